package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// drill is something that happens to a cluster.
type drill struct {
	name string
	play func(ctx context.Context) error // returns when all is well again
}

// drills returns all drills, in the order in which they are played: later ones build on the state that earlier ones
// leave.
func drills(c *cluster, nextTag string) []drill {
	return []drill{
		{"rollout", c.rollout},
		{"upgrade", func(ctx context.Context) error { return c.upgrade(ctx, "image.tag="+nextTag) }},
		{"bad setting and rollback", c.badSetting},
		{"forced delete of an edge", c.forcedDelete},
		{"node drain", c.drain},
		{"cut node", c.cutNode},
		{"scale 3, 5, 2, 3", c.scale},
		{"NATS rolling restart", c.restartNATS},
		{"Redis restart", c.restartRedis},
		{"Redis killed", c.killRedis},
		{"password change", func(ctx context.Context) error { return c.upgrade(ctx, "trial.password=second") }},
	}
}

func (c *cluster) rollout(ctx context.Context) error {
	if _, err := c.kubectl(ctx, "rollout", "restart", "deployment/"+c.release); err != nil {
		return err
	}
	return c.well(ctx)
}

// badSetting gives a setting that edges refuse. The chart's check keeps it from the cluster; given in spite of that, no
// new edge starts with it, an old one that is restarted starts as before, and undoing the rollout ends it.
func (c *cluster) badSetting(ctx context.Context) error {
	const bad = `config.session\.grace=soon`
	if _, err := c.helm(ctx, c.upgradeArgs(bad)...); err == nil {
		return errors.New("helm upgrade took a setting that edges refuse")
	}
	if _, err := c.helm(ctx, append(c.upgradeArgs(bad), "--no-hooks")...); err != nil {
		return err
	}
	var old pod
	err := c.until(ctx, "a pod waits because of its settings", func() (bool, error) {
		pods, err := c.pods(ctx, "edge")
		for _, p := range pods {
			if p.ready {
				old = p
			}
		}
		return slices.ContainsFunc(pods, func(p pod) bool { return strings.Contains(p.waits, "CrashLoopBackOff") }), err
	})
	if err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, "delete", "pod", old.name); err != nil {
		return err
	}
	err = c.until(ctx, "three edges with the old settings are ready", func() (bool, error) {
		pods, err := c.pods(ctx, "edge")
		pods = slices.DeleteFunc(pods, func(p pod) bool { return !p.ready || p.leaving })
		return len(pods) == 3, err
	})
	if err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, "rollout", "undo", "deployment/"+c.release); err != nil {
		return err
	}
	if err := c.well(ctx); err != nil {
		return err
	}
	// Kubernetes takes the settings, which kubectl has undone, for kubectl's from here on: Helm takes them back with
	// the next that are good.
	c.settings = append(c.settings, `config.log\.level=info`)
	if _, err := c.helm(ctx, append(c.upgradeArgs(), "--force-conflicts")...); err != nil {
		return err
	}
	return c.well(ctx)
}

func (c *cluster) forcedDelete(ctx context.Context) error {
	edges, err := c.pods(ctx, "edge")
	if err != nil {
		return err
	}
	return c.kill(ctx, edges[0].name)
}

// kill has Kubernetes forget a pod at once, whatever becomes of its processes.
func (c *cluster) kill(ctx context.Context, pod string) error {
	if _, err := c.kubectl(ctx, "delete", "pod", pod, "--force", "--grace-period=0"); err != nil {
		return err
	}
	return c.well(ctx)
}

// withoutRedis returns a node with an edge and without Redis, which runs once and can't move.
func (c *cluster) withoutRedis(ctx context.Context) (string, error) {
	redis, err := c.pods(ctx, "redis")
	if err != nil {
		return "", err
	}
	edges, err := c.pods(ctx, "edge")
	if err != nil {
		return "", err
	}
	for _, e := range edges {
		if !slices.ContainsFunc(redis, func(r pod) bool { return r.node == e.node }) {
			return e.node, nil
		}
	}
	return "", errors.New("each edge is on the node of Redis")
}

func (c *cluster) drain(ctx context.Context) error {
	node, err := c.withoutRedis(ctx)
	if err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+patience.String()); err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, "uncordon", node); err != nil {
		return err
	}
	return c.well(ctx)
}

// cutFor is how long a node is cut off: longer than Kubernetes takes to notice, so that Services leave its pods out.
const cutFor = 90 * time.Second

// cutNode takes a node from the network: its end of the cable is called like the node, where this program runs.
func (c *cluster) cutNode(ctx context.Context) error {
	node, err := c.withoutRedis(ctx)
	if err != nil {
		return err
	}
	if _, err := c.command(ctx, "", "ip", "link", "set", node, "down"); err != nil {
		return err
	}
	waited := wait(ctx, cutFor)
	if _, err := c.command(context.WithoutCancel(ctx), "", "ip", "link", "set", node, "up"); err != nil {
		return err
	}
	if waited != nil {
		return waited
	}
	return c.well(ctx)
}

func (c *cluster) scale(ctx context.Context) error {
	for _, n := range []int{5, 2, 3} {
		if err := c.upgrade(ctx, fmt.Sprintf("replicas=%d", n)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) restartNATS(ctx context.Context) error {
	if _, err := c.kubectl(ctx, "rollout", "restart", "statefulset/"+c.release+"-nats"); err != nil {
		return err
	}
	return c.well(ctx)
}

func (c *cluster) restartRedis(ctx context.Context) error {
	if _, err := c.kubectl(ctx, "delete", "pod", c.release+"-redis-0"); err != nil {
		return err
	}
	return c.well(ctx)
}

func (c *cluster) killRedis(ctx context.Context) error { return c.kill(ctx, c.release+"-redis-0") }
