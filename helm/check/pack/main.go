// Command pack packs the Helm chart of a release, as `helm package` does, with the version of the release, and the same
// bytes each time.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

func main() {
	dir := flag.String("chart", "../agora", "`folder` of the chart")
	out := flag.String("out", ".", "`folder` to write to")
	version := flag.String("version", "", "`version` of the chart and of the program, such as 1.2.3")
	seconds := flag.Int64("time", 0, "`time` of all files, in seconds since 1970")
	flag.Parse()
	path, err := pack(*dir, *out, *version, time.Unix(*seconds, 0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// pack writes the chart in a folder as a package of a version, and returns its path.
func pack(dir, out, version string, at time.Time) (string, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = version, version
	setTimes(c, at)
	return util.Save(c, out)
}

// setTimes gives everything the same time: that of a file is when it was checked out.
func setTimes(c *chart.Chart, at time.Time) {
	c.ModTime, c.SchemaModTime = at, at
	for _, f := range c.Raw {
		f.ModTime = at
	}
	for _, f := range c.Templates {
		f.ModTime = at
	}
	for _, f := range c.Files {
		f.ModTime = at
	}
}
