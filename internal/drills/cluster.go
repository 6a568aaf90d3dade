package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// cluster is a release of the chart on a cluster of Kubernetes. One goroutine uses it.
type cluster struct {
	namespace, release, chart string
	settings                  []string // of the release, as --set has them; later ones count
	progress                  io.Writer
}

// patience is how long a drill waits for the cluster to be as it is to be.
const patience = 5 * time.Minute

// install makes the namespace and the release in it, with an image of this tag, and has the chart test it.
func (c *cluster) install(ctx context.Context, tag string) error {
	namespace := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace",
		"metadata": {"name": %q, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`, c.namespace)
	if _, err := c.command(ctx, namespace, "kubectl", "apply", "-f", "-"); err != nil {
		return err
	}
	err := c.upgrade(ctx, "image.tag="+tag, "auth.mode=none", "nats.bundled=true", "redis.bundled=true", "trial.password=first")
	if err != nil {
		return err
	}
	if _, err = c.helm(ctx, "test", c.release); err != nil {
		return err
	}
	return c.closed(ctx)
}

// closed reports an error where NATS or Redis can be reached from here: NetworkPolicies let edges alone to them.
func (c *cluster) closed(ctx context.Context) error {
	for component, port := range map[string]string{"nats": "4222", "redis": "6379"} {
		pods, err := c.pods(ctx, component)
		if err != nil {
			return err
		}
		for _, p := range pods {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(p.ip, port))
			if err == nil {
				conn.Close()
				return fmt.Errorf("%s can be reached by others than edges: nobody enforces NetworkPolicies", p.name)
			}
		}
	}
	return nil
}

// upgrade changes settings of the release, and waits until it is well. What is set stays set in later upgrades.
func (c *cluster) upgrade(ctx context.Context, settings ...string) error {
	c.settings = append(c.settings, settings...)
	if _, err := c.helm(ctx, c.upgradeArgs()...); err != nil {
		return err
	}
	return c.well(ctx)
}

func (c *cluster) upgradeArgs(more ...string) []string {
	args := []string{"upgrade", "--install", c.release, c.chart}
	for _, s := range slices.Concat(c.settings, more) {
		args = append(args, "--set", s)
	}
	return args
}

// well waits until every node is ready and every pod of the release is the newest, ready, and alone in its place.
func (c *cluster) well(ctx context.Context) error {
	if _, err := c.kubectl(ctx, "wait", "--for=condition=Ready", "node", "--all", "--timeout="+patience.String()); err != nil {
		return err
	}
	for _, what := range []string{"statefulset/" + c.release + "-nats", "statefulset/" + c.release + "-redis", "deployment/" + c.release} {
		if _, err := c.kubectl(ctx, "rollout", "status", what, "--timeout="+patience.String()); err != nil {
			return err
		}
	}
	return c.until(ctx, "no pod ends or is not ready", func() (bool, error) {
		all, err := c.pods(ctx, "")
		return !slices.ContainsFunc(all, func(p pod) bool { return slices.Contains(components, p.component) && (p.leaving || !p.ready) }), err
	})
}

// until waits until a condition holds.
func (c *cluster) until(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(patience); ; {
		ok, err := holds()
		switch {
		case ok && err == nil:
			return nil
		case time.Now().After(end):
			return errors.Join(fmt.Errorf("waited in vain until %s", what), err)
		case !pause.For(ctx, time.Second):
			return ctx.Err()
		}
	}
}

// pod is what the drills look at of one.
type pod struct {
	name, component, node, ip string
	ready, leaving            bool
	waits                     string // why a container of it does not run
}

// components are those of a release that run all the time.
var components = []string{"edge", "nats", "redis"}

// pods returns the pods of a component of the release, of all if it is empty.
func (c *cluster) pods(ctx context.Context, component string) (all []pod, err error) {
	selector := "app.kubernetes.io/instance=" + c.release
	if component != "" {
		selector += ",app.kubernetes.io/component=" + component
	}
	out, err := c.kubectl(ctx, "get", "pods", "-l", selector, "-o", "json")
	if err != nil {
		return nil, err
	}
	type container struct {
		State struct{ Waiting struct{ Reason string } }
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name              string
				Labels            map[string]string
				DeletionTimestamp string
			}
			Spec   struct{ NodeName string }
			Status struct {
				PodIP                                    string
				Conditions                               []struct{ Type, Status string }
				InitContainerStatuses, ContainerStatuses []container
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	for _, i := range list.Items {
		p := pod{
			name: i.Metadata.Name, component: i.Metadata.Labels["app.kubernetes.io/component"],
			node: i.Spec.NodeName, ip: i.Status.PodIP, leaving: i.Metadata.DeletionTimestamp != "",
		}
		for _, c := range i.Status.Conditions {
			p.ready = p.ready || c.Type == "Ready" && c.Status == "True"
		}
		for _, s := range slices.Concat(i.Status.InitContainerStatuses, i.Status.ContainerStatuses) {
			p.waits += s.State.Waiting.Reason
		}
		all = append(all, p)
	}
	return all, nil
}

// edges returns the addresses of the edges that are ready, each by itself.
func (c *cluster) edges(ctx context.Context) (urls []string, err error) {
	pods, err := c.pods(ctx, "edge")
	for _, p := range pods {
		if p.ready && !p.leaving {
			urls = append(urls, "ws://"+net.JoinHostPort(p.ip, "8080"))
		}
	}
	return urls, err
}

// address returns the address at which the Service has agents connect.
func (c *cluster) address(ctx context.Context) (string, error) {
	ip, err := c.kubectl(ctx, "get", "service", c.release, "-o", "jsonpath={.spec.clusterIP}")
	return "ws://" + net.JoinHostPort(ip, "80"), err
}

// kubectl runs kubectl in the release's namespace, and returns what it prints.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	return c.command(ctx, "", "kubectl", append([]string{"--namespace", c.namespace}, args...)...)
}

// helm runs helm in the release's namespace, and returns what it prints.
func (c *cluster) helm(ctx context.Context, args ...string) (string, error) {
	return c.command(ctx, "", "helm", append([]string{"--namespace", c.namespace}, args...)...)
}

// command runs a program, and returns what it prints; its error has what the program complains of.
func (c *cluster) command(ctx context.Context, stdin, name string, args ...string) (string, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &complaint
	if verb := args[min(2, len(args)-1)]; verb != "get" {
		fmt.Fprintf(c.progress, "%s %s %s\n", time.Now().Format(time.TimeOnly), name, strings.Join(args, " "))
	}
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out, &complaint)
	}
	return string(out), nil
}

// wait lets time pass, and returns ctx's error if it ends first.
func wait(ctx context.Context, d time.Duration) error {
	if !pause.For(ctx, d) {
		return ctx.Err()
	}
	return nil
}
