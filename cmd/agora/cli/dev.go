package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

// NewDevVerbs returns the verbs below `agora dev`, by which the edges of one that runs are killed and started.
func NewDevVerbs() []*cobra.Command {
	return []*cobra.Command{
		newDevVerb("kill", "Kill an edge of the `agora dev` that runs", "edge-%s is killed\n",
			"Kill edge N of the `agora dev` that runs, as if its process had died: nothing is handed over, and what it was about\n"+
				"to tell is left untold. Agents go to other edges. `kill N` typed into `agora dev` does the same."),
		newDevVerb("start", "Start an edge again that was killed", "edge-%s runs again\n",
			"Start edge N of the `agora dev` that runs again, where it was. `start N` typed into `agora dev` does the same."),
	}
}

func newDevVerb(name, short, done, long string) *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,

		Use:     name + " N",
		Short:   short,
		Long:    long,
		Example: "  agora dev " + name + " 1",
		Args:    cobra.ExactArgs(1),
		RunE: shown(&o, http.MethodPost, "/v1/dev/"+name, func(w io.Writer, _ *struct{}, args []string) {
			fmt.Fprintf(w, done, args[0])
		}),
	})
}
