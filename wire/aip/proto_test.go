package aip_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

var update = flag.Bool("update", false, "write the generated code, and vectors, anew")

// compiled is aip.proto, compiled.
func compiled(t *testing.T) *descriptorpb.FileDescriptorProto {
	t.Helper()
	c := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(t.Context(), "aip.proto")
	if err != nil {
		t.Fatal(err)
	}
	return protoutil.ProtoFromFileDescriptor(files[0])
}

// What is checked in is what the generators make of the proto: go test ./wire/aip -update writes it.
func TestTheGeneratedCodeIsThatOfTheProto(t *testing.T) {
	file := compiled(t)
	parameter := "paths=source_relative"
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{"aip.proto"}, Parameter: &parameter, ProtoFile: []*descriptorpb.FileDescriptorProto{file},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		cmd := exec.CommandContext(t.Context(), "go", "tool", generator)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", generator, err)
		}
		var made pluginpb.CodeGeneratorResponse
		if err := proto.Unmarshal(out, &made); err != nil || made.GetError() != "" || len(made.GetFile()) != 1 {
			t.Fatalf("%s: %v, %q, %d files", generator, err, made.GetError(), len(made.GetFile()))
		}
		name, want := made.GetFile()[0].GetName(), []byte(made.GetFile()[0].GetContent())
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s makes of aip.proto: run go test ./wire/aip -update", name, generator)
		}
	}
}

// The descriptors that edges show by reflection are those of the proto.

// The descriptors that edges show by reflection are those of the proto.
func TestTheDescriptorsAreThoseOfTheProto(t *testing.T) {
	want := compiled(t)
	want.SourceCodeInfo = nil
	if got := protodesc.ToFileDescriptorProto(aip.File_aip_proto); !proto.Equal(got, want) {
		t.Errorf("the code's descriptors are not those of aip.proto:\n%v\n%v", got, want)
	}
}

func TestTheAnswerToARegistrationIsPutTogetherOfItsPeers(t *testing.T) {
	t.Parallel()
	agent, box := &aip.AgentInfo{AgentId: "a", Address: "h:1", Description: strings.Repeat("x", 70<<10)}, &aip.ToolBoxInfo{ToolboxId: "b", Address: "h:2"}
	other := &aip.Peer{InfoType: &aip.Peer_AgentInfo{AgentInfo: &aip.AgentInfo{AgentId: "c"}}}
	encoded := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	listed, err := aip.ListedPeer(other)
	if err != nil {
		t.Fatal(err)
	}
	f := aip.RegisterAnswer([][]byte{
		aip.ListedNode(&agora.Registration{Media: aip.MediaAgent, Body: encoded(agent)}),
		aip.ListedNode(&agora.Registration{Media: aip.MediaToolbox, Body: encoded(box)}),
		nil, listed,
	})
	defer f.Free()
	got := new(aip.RegisterAgentResponse)
	if err := proto.Unmarshal(f.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	want := &aip.RegisterAgentResponse{Success: true, Peers: []*aip.Peer{
		{InfoType: &aip.Peer_AgentInfo{AgentInfo: agent}}, {InfoType: &aip.Peer_ToolboxInfo{ToolboxInfo: box}}, other,
	}}
	if !proto.Equal(got, want) {
		t.Errorf("the answer is %v, want %v", got, want)
	}
}
