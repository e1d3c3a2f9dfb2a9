// Command kubernetes is the control plane's three servers in one program: they share most of their code, so
// one link is a third of the work and of the size. The name it is called by chooses the server.
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	servers := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	server, known := servers[filepath.Base(os.Args[0])]
	if !known {
		os.Stderr.WriteString("call this program kube-apiserver, kube-controller-manager or kube-scheduler\n")
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}
