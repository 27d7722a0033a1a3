// Package version has the command that says which kubectl amc this is.
package version

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/spf13/cobra"
)

// NewCommand returns the command version.
func NewCommand(o *options.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Say which version of kubectl amc this is",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			fmt.Fprintln(o.Out, describe(info))
			return nil
		},
	}
}

// describe says in a line what a program was built from; nil where that is not known.
func describe(info *debug.BuildInfo) string {
	const name = "kubectl amc"
	if info == nil {
		return name + ": it is not known what this program was built from"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := strings.Trim(info.Main.Version, "()") // Go writes (devel) where there is none
	if version == "" {
		version = "devel"
	}
	from := []string{info.GoVersion, settings["GOOS"] + "/" + settings["GOARCH"]}
	if revision := settings["vcs.revision"]; revision != "" {
		commit := "commit " + revision
		if settings["vcs.modified"] == "true" {
			commit += " with changes"
		}
		from = append([]string{commit + " of " + settings["vcs.time"]}, from...)
	}
	return fmt.Sprintf("%s %s (%s)", name, version, strings.Join(from, ", "))
}
