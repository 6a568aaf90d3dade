package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

func TestOperatorsLinkGatewaysAndEndThat(t *testing.T) {
	t.Parallel()
	there := startDev(t)
	here := startDev(t, "--edges", "2")
	if _, err := gatewayAt(t, there.grpc[0]).RegisterTool(await.Context(t), boxed("box", toolbox(t))); err != nil {
		t.Fatal(err)
	}
	ask := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := command(t, append(args, "--admin", here.admin[1])...)
		if status != want {
			t.Errorf("agora %q ended with %d: %s", args, status, stderr)
		}
		return stdout, stderr
	}
	if out, _ := ask(0, "link", there.grpc[0]); !strings.Contains(out, "linked to "+there.grpc[0]) {
		t.Errorf("agora link prints %s", out)
	}
	g := gatewayAt(t, here.grpc[0])
	await.True(t, "the node is here", func() bool {
		ids, err := nodeIDs(await.Context(t), g)
		return err == nil && slices.Equal(ids, []string{"box"})
	})
	shouts(t, g)
	await.True(t, "the link is up", func() bool {
		out, _ := ask(0, "links")
		rows := strings.Split(strings.TrimSpace(out), "\n")
		fields := strings.Fields(rows[len(rows)-1])
		return len(rows) == 2 && len(fields) == 7 && fields[0] == there.grpc[0] && fields[1] == "default" && fields[2] == "up" && fields[4] == "1" && fields[5] == "1"
	})
	if out, _ := ask(0, "links", "--json"); !strings.Contains(out, `"address":"`+there.grpc[0]+`"`) {
		t.Errorf("agora links --json prints %s", out)
	}
	await.True(t, "one of the edges counts it", func() bool {
		_, one := scrape(t, here.admin[0])
		_, two := scrape(t, here.admin[1])
		return one[`agora_links{state="up"}`]+two[`agora_links{state="up"}`] == "01" || one[`agora_links{state="up"}`]+two[`agora_links{state="up"}`] == "10"
	})
	if out, _ := ask(0, "unlink", there.grpc[0]); !strings.Contains(out, "is over") {
		t.Errorf("agora unlink prints %s", out)
	}
	await.True(t, "the node is gone", func() bool {
		ids, err := nodeIDs(await.Context(t), g)
		return err == nil && len(ids) == 0
	})
	if out, _ := ask(0, "links"); strings.Count(out, "\n") != 1 {
		t.Errorf("agora links prints %s", out)
	}
	if _, errs := ask(exit.NotFound, "unlink", there.grpc[0]); !strings.Contains(errs, "there is no link") {
		t.Errorf("a link that is none: %s", errs)
	}
	ask(exit.Error, "link", "gateway")
	ask(exit.Usage, "link")
}

func TestLinksOfTheSettingsStand(t *testing.T) {
	t.Parallel()
	there := startDev(t)
	if _, err := gatewayAt(t, there.grpc[0]).RegisterTool(await.Context(t), boxed("box", toolbox(t))); err != nil {
		t.Fatal(err)
	}
	here := startDev(t, "--aip.link", there.grpc[0])
	await.True(t, "the node is here", func() bool {
		ids, err := nodeIDs(await.Context(t), gatewayAt(t, here.grpc[0]))
		return err == nil && slices.Equal(ids, []string{"box"})
	})
}

func TestAnEdgeWithoutGRPCKnowsNothingOfLinks(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--grpc-addr", "none")
	status, _, stderr := command(t, "links", "--admin", d.admin[0])
	if status != exit.Error || !strings.Contains(stderr, "has no grpc-addr") {
		t.Errorf("agora links ended with %d: %s", status, stderr)
	}
}
