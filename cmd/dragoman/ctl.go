package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/compare"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// ctlCommand is the tree of commands for running proxies.
func ctlCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "ctl", Short: "Look at running proxies", Long: "Look at running proxies through their admin interfaces. Nothing is changed.",
		Example: "  dragoman ctl compare 127.0.0.1:9901 127.0.0.1:9902",
	}
	c.AddCommand(compareCommand())
	group(c)
	return c
}

func compareCommand() *cobra.Command {
	var output, ignore string
	var all bool
	var o compare.Options
	c := &cobra.Command{
		Use: "compare ENVOY_ADMIN OUR_ADMIN", Short: "Compare two running proxies: configuration, clusters, stats", Args: exactly(2),
		Long: `Compare two running proxies by their admin interfaces: what /config_dump shows of each resource, the clusters and their
hosts, which stats there are and what they count. It is for a shadow run: an Envoy and a Dragoman with the same
configuration and the same traffic. An address is HOST:PORT, a URL, or the path of a Unix socket.

Of the values, those are left out that tell of the moment, the process or the time (uptime, memory, latencies);
--volatile compares them too. Ports that must differ on one machine are left out by --ignore, which is a regular
expression over lines such as "listener main address.socket_address.port_value" and "cluster.backend.upstream_rq_total".`,
		Example: `  dragoman ctl compare 127.0.0.1:9901 127.0.0.1:9902
  dragoman ctl compare envoy:9901 dragoman:9901 --tolerance 2 --ignore 'port_value|^bootstrap  admin'
  dragoman ctl compare 127.0.0.1:9901 127.0.0.1:9902 --output json > report.json`,
		Annotations: map[string]string{"exit": "0: nothing differs.\n\n1: something differs.\n\n2: an address does not answer, or is no admin interface."},
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			if ignore != "" {
				var err error
				if o.Ignore, err = regexp.Compile(ignore); err != nil {
					return fmt.Errorf("--ignore: %w", err)
				}
			}
			r, err := compare.Run(c.Context(), args[0], args[1], o)
			if err != nil {
				return err
			}
			if output == "json" {
				err = printJSON(c.OutOrStdout(), r)
			} else {
				err = printReport(c.OutOrStdout(), r, all)
			}
			if err == nil && !r.Equal() {
				err = &answer{}
			}
			return err
		},
	}
	c.Flags().StringVar(&output, "output", "text", "form of the result, `text|json`")
	c.Flags().StringVar(&ignore, "ignore", "", "leave out differences that this `regexp` matches")
	c.Flags().Float64Var(&o.Tolerance, "tolerance", 0, "by how many percent values may differ: `P`")
	c.Flags().Uint64Var(&o.Slack, "slack", 0, "by how much values may differ in any case: `N`")
	c.Flags().BoolVar(&o.Volatile, "volatile", false, "compare the values of stats too that tell of the moment or the process")
	c.Flags().BoolVar(&all, "all", false, "print all lines of long lists")
	return c
}

// shownLines is how many lines of a list are printed without --all.
const shownLines = 40

// printReport prints what was found for people.
func printReport(out io.Writer, r *compare.Report, all bool) error {
	var b strings.Builder
	for i, s := range []compare.Side{r.A, r.B} {
		fmt.Fprintf(&b, "%s %s: %s, %s for %s\n", []string{"A", "B"}[i], s.Address, s.Version, s.State, s.Uptime)
		if s.Draining > 0 {
			fmt.Fprintf(&b, "  listeners that drain: %d; routes of theirs are in its configuration until they are gone\n", s.Draining)
		}
	}
	limit := shownLines
	if all {
		limit = 1 << 30
	}
	// Each part has a limit of its own, so that what only one of them has does not hide what only the other one has.
	section := func(title string, parts ...[]string) {
		b.WriteString("\n" + title + "\n")
		for _, lines := range parts {
			for i, l := range lines {
				if i == limit {
					fmt.Fprintf(&b, "  ... and %d more lines (--all)\n", len(lines)-i)
					break
				}
				b.WriteString(l + "\n")
			}
		}
	}
	section(count("configuration", r.Resources, "resources", len(r.Configuration)), changeParts(r.Configuration)...)
	section(count("clusters", r.ClusterCount, "clusters", len(r.Clusters)), changeParts(r.Clusters)...)
	var onlyA, onlyB []string
	for _, n := range r.StatsOnlyA {
		onlyA = append(onlyA, "  - "+n)
	}
	for _, n := range r.StatsOnlyB {
		onlyB = append(onlyB, "  + "+n)
	}
	section(fmt.Sprintf("stat names: %d in both, %d only in A (-), %d only in B (+)", r.StatCount, len(r.StatsOnlyA), len(r.StatsOnlyB)), onlyA, onlyB)
	var values []string
	for _, v := range r.Values {
		values = append(values, fmt.Sprintf("  %s: %d -> %d%s", v.Name, v.A, v.B, percent(v.A, v.B)))
	}
	section(count("stat values", r.ValueCount, "counters and gauges", len(r.Values)), values)
	_, err := io.WriteString(out, b.String())
	return err
}

func percent(a, b uint64) string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f%%)", (float64(b)-float64(a))*100/float64(a))
}

func count(title string, n int, what string, differ int) string {
	if n == 1 && !strings.Contains(what, " ") {
		what = strings.TrimSuffix(what, "s")
	}
	if differ == 0 {
		return fmt.Sprintf("%s: %d %s, no difference", title, n, what)
	}
	return fmt.Sprintf("%s: %d %s, %d differ (A -> B)", title, n, what, differ)
}

// changeParts are the lines of changes: what only A has, what only B has, and what differs.
func changeParts(list []configfile.Change) [][]string {
	parts := make([][]string, 3)
	for _, c := range list {
		i := map[configfile.Op]int{configfile.Removed: 0, configfile.Added: 1, configfile.Changed: 2}[c.Op]
		what := []string{"  - %s %s: only in A", "  + %s %s: only in B", "  ~ %s %s"}[i]
		parts[i] = append(parts[i], strings.TrimRight(fmt.Sprintf(what, c.Kind, c.Name), " "))
		for _, f := range c.Fields {
			parts[i] = append(parts[i], "      "+fieldText(f))
		}
	}
	return parts
}
