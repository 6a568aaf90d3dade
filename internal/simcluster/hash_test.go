package simcluster

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestHash(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("FIRST"), 10, 64)
	r := Play(t, MakePlan(seed))
	h := fnv.New64()
	h.Write([]byte(strings.Join(r.Story, "\n")))
	fmt.Println(seed, h.Sum64(), r.Took, r.Seen)
	os.WriteFile(os.Getenv("OUT"), []byte(strings.Join(r.Story, "\n")), 0o600)
}
