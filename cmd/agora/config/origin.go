package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// origins says where the values of settings come from. A flag goes before the
// environment, that before the file, and that before the default.
type origins struct {
	lookup func(string) (string, bool) // the environment
	from   map[string]string           // by setting: "flag", "environment NAME" or "file PATH"; the others have their defaults
}

const variablePrefix = "AGORA_"

// Variable returns the name of a setting's environment variable: capitals, and
// '_' for '.' and '-'.
func Variable(setting string) string {
	return variablePrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(setting))
}

// Fill gives the flags that were not given what environment and file say. It
// returns every fault that it finds; the settings without one are set nevertheless.
func Fill(f *pflag.FlagSet, lookup func(string) (string, bool)) (origins, error) {
	o := origins{lookup: lookup, from: map[string]string{}}
	err := o.environment(f)
	if file := f.Lookup(configFlag); file != nil && file.Value.String() != "" {
		err = errors.Join(err, o.file(f, file.Value.String()))
	}
	return o, err
}

// FillCommand is fill for a command that is about to run, with what the environment says besides. Its context knows the
// origins then.
func FillCommand(cmd *cobra.Command) error {
	from, err := Fill(cmd.Flags(), os.LookupEnv)
	cmd.SetContext(context.WithValue(cmd.Context(), originsKey{}, from))
	return errors.Join(err, refuseStrays(cmd, os.Environ()))
}

// originsKey is where a command's context says where its settings come from.
type originsKey struct{}

// OriginsOf returns where the settings of a command that runs come from.
func OriginsOf(cmd *cobra.Command) origins {
	o, _ := cmd.Context().Value(originsKey{}).(origins)
	return o
}

// environment sets the flags that were not given from AGORA_… variables.
func (o origins) environment(f *pflag.FlagSet) error {
	var errs []error
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			o.from[flag.Name] = "flag"
			return
		}
		name := Variable(flag.Name)
		value, ok := o.lookup(name)
		if !ok || flag.Name == "help" || ofService(name, value) {
			return
		}
		o.from[flag.Name] = "environment " + name
		if err := flag.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: not a value of %s: %w", name, flag.Name, err))
		}
		flag.Changed = true
	})
	return errors.Join(errs...)
}

// file sets the flags that neither the command line nor the environment has.
func (o origins) file(f *pflag.FlagSet, path string) error {
	values, err := readSettings(path)
	errs := []error{err}
	dev, edge := SettingNames(devFlags()), SettingNames(EdgeFlags())
	known := slices.Compact(slices.Sorted(slices.Values(slices.Concat(dev, edge))))
	for _, v := range values {
		at := fmt.Sprintf("%s:%d: ", path, v.line)
		flag := f.Lookup(v.key)
		switch {
		case !slices.Contains(known, v.key):
			errs = append(errs, fmt.Errorf("%s%w", at, unknownSetting(v.key, known)))
		case flag == nil && slices.Contains(edge, v.key): // one file may serve `agora dev`, too
		case flag == nil:
			errs = append(errs, fmt.Errorf("%s%s is a setting of `agora dev` alone", at, v.key))
		case o.from[v.key] != "":
		default:
			o.from[v.key] = "file " + path
			if err := v.set(flag); err != nil {
				errs = append(errs, fmt.Errorf("%snot a value of %s: %w", at, v.key, err))
			}
			flag.Changed = true
		}
	}
	return errors.Join(errs...)
}

// Of returns where a setting has its value from.
func (o origins) Of(setting string) string {
	if from, ok := o.from[setting]; ok {
		return from
	}
	return "default"
}

// notSettings are flags that a file can't set.
var notSettings = map[string]bool{configFlag: true, "help": true}

// EdgeFlags and devFlags return the settings of an edge, and of `agora dev`, with their defaults.
func EdgeFlags() *pflag.FlagSet { return defined(new(Edge).Flags) }
func devFlags() *pflag.FlagSet  { return defined(new(Dev).Flags) }

func defined(flags func(*pflag.FlagSet)) *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags(f)
	return f
}

// SettingNames returns the names of the settings among flags.
func SettingNames(f *pflag.FlagSet) []string {
	names := map[string]bool{}
	f.VisitAll(func(f *pflag.Flag) { names[f.Name] = !notSettings[f.Name] })
	maps.DeleteFunc(names, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(names))
}
