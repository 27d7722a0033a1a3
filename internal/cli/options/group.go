package options

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes a command one that only holds others. By itself it prints its help; a word that is none of its commands is a
// mistake, and not a wish for help.
func Group(command *cobra.Command) *cobra.Command {
	command.SuggestionsMinimumDistance = 2
	command.DisableFlagsInUseLine = true
	command.ValidArgsFunction = cobra.NoFileCompletions
	command.Args = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], command.CommandPath())
		if similar := command.SuggestionsFor(args[0]); len(similar) > 0 {
			return fmt.Errorf("%s; did you mean %s?", text, strings.Join(similar, " or "))
		}
		return fmt.Errorf("%s; `%s --help` lists those there are", text, command.CommandPath())
	}
	command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	return command
}
