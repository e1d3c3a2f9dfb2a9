package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

const (
	// How soon a changed list of targets is scraped. Prometheus waits five seconds for each of both.
	targetUpdate = 200 * time.Millisecond
	lookback     = 5 * time.Minute
	maxSamples   = 50_000_000
	timeout      = 2 * time.Minute
)

type server struct {
	configuration *config.Config
	storage       *tsdb.DB
	engine        *promql.Engine
	scraper       *scrape.Manager
	rules         *rules.Manager
	registry      *prometheus.Registry
	logger        *slog.Logger
}

func serve(configuration, directory, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", address)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := &server{registry: prometheus.NewRegistry(), logger: logger}
	if s.configuration, err = config.LoadFile(configuration, false, logger); err != nil {
		return err
	}
	options := tsdb.DefaultOptions()
	options.WALSegmentSize = 16 << 20
	if s.storage, err = tsdb.Open(directory, logger, s.registry, options, nil); err != nil {
		return err
	}
	defer s.storage.Close()
	s.engine = newEngine(logger)
	if err := s.startScraping(ctx); err != nil {
		return err
	}
	defer s.scraper.Stop()
	if err := s.startRules(ctx, filepath.Dir(configuration)); err != nil {
		return err
	}
	defer s.rules.Stop()
	return s.answer(ctx, address)
}

func newEngine(logger *slog.Logger) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   logger,
		MaxSamples:               maxSamples,
		Timeout:                  timeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
	})
}

func (s *server) startScraping(ctx context.Context) error {
	metrics, err := discovery.CreateAndRegisterSDMetrics(s.registry)
	if err != nil {
		return err
	}
	targets := discovery.NewManager(ctx, s.logger, s.registry, metrics, discovery.Updatert(targetUpdate))
	if targets == nil {
		return errors.New("the discovery of targets did not start")
	}
	options := &scrape.Options{DiscoveryReloadInterval: model.Duration(targetUpdate)}
	if s.scraper, err = scrape.NewManager(options, s.logger, nil, s.storage, s.registry); err != nil {
		return err
	}
	if err := s.scraper.ApplyConfig(s.configuration); err != nil {
		return err
	}
	jobs, err := s.configuration.GetScrapeConfigs()
	if err != nil {
		return err
	}
	sources := map[string]discovery.Configs{}
	for _, job := range jobs {
		sources[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := targets.ApplyConfig(sources); err != nil {
		return err
	}
	go targets.Run()
	go s.scraper.Run(targets.SyncCh())
	return nil
}

func (s *server) startRules(ctx context.Context, directory string) error {
	s.rules = rules.NewManager(&rules.ManagerOptions{
		ExternalURL: &url.URL{},
		QueryFunc:   rules.EngineQueryFunc(s.engine, s.storage),
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		Context:     ctx,
		Appendable:  s.storage,
		Queryable:   s.storage,
		Logger:      s.logger,
		Registerer:  s.registry,
	})
	files := make([]string, 0, len(s.configuration.RuleFiles))
	for _, pattern := range s.configuration.RuleFiles {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(directory, pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	interval := time.Duration(s.configuration.GlobalConfig.EvaluationInterval)
	if err := s.rules.Update(interval, files, labels.EmptyLabels(), "", nil); err != nil {
		return err
	}
	go s.rules.Run()
	return nil
}

func (s *server) answer(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	alerts := notifier.NewManager(&notifier.Options{Registerer: s.registry}, model.UTF8Validation, s.logger)
	api := v1.NewAPI(
		s.engine, s.storage, nil, s.storage,
		func(context.Context) v1.ScrapePoolsRetriever { return s.scraper },
		func(context.Context) v1.TargetRetriever { return s.scraper },
		func(context.Context) v1.AlertmanagerRetriever { return alerts },
		func() config.Config { return *s.configuration },
		map[string]string{},
		v1.GlobalURLOptions{ListenAddress: address, Host: address, Scheme: "http"},
		func(next http.HandlerFunc) http.HandlerFunc { return next },
		statistics{s.storage}, "", false, s.logger,
		func(context.Context) v1.RulesRetriever { return s.rules },
		0, 1, 0, false, regexp.MustCompile("^$"),
		func() (v1.RuntimeInfo, error) { return v1.RuntimeInfo{}, nil },
		&v1.PrometheusVersion{},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false },
		s.registry, s.registry, nil,
		false, nil, false, false, false, false, lookback, false, false, nil,
	)
	router := route.New()
	api.Register(router.WithPrefix("/api/v1"))
	router.Get("/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP)
	router.Get("/-/ready", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{Handler: router, ReadHeaderTimeout: timeout}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// statistics is the storage as the API's part for administrators, which is switched off, wants it.
type statistics struct{ *tsdb.DB }

func (s statistics) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

func (s statistics) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

func (s statistics) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }

func (s statistics) Delete(ctx context.Context, from, to int64, matchers ...*labels.Matcher) error {
	return s.DB.Delete(ctx, from, to, matchers...)
}

var _ storage.SampleAndChunkQueryable = (*tsdb.DB)(nil)
