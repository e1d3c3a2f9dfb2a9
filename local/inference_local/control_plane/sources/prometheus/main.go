// Command prometheus is Prometheus 3 for one machine: its scraper, storage, rules, PromQL engine and HTTP API,
// without the user interface, remote storage and cloud discovery of the whole server.
//
//	prometheus serve CONFIGURATION STORAGE ADDRESS   scrapes targets and answers /api/v1 and /federate on a loopback address
//	prometheus evaluate                              reads cases from stdin, and evaluates them at their own times
package main

import (
	"fmt"
	"os"

	_ "github.com/prometheus/prometheus/discovery/file"
	_ "github.com/prometheus/prometheus/discovery/http"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 4 && arguments[0] == "serve":
		return serve(arguments[1], arguments[2], arguments[3])
	case len(arguments) == 1 && arguments[0] == "evaluate":
		return evaluate(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("usage: prometheus serve CONFIGURATION STORAGE ADDRESS | prometheus evaluate")
}
