package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

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
	"github.com/prometheus/prometheus/web"
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
	if s.scraper, err = scrape.NewManager(options, s.logger, nil, nil, s.storage, s.registry); err != nil {
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
	local := localStorage{s.storage}
	handler := web.New(s.logger, &web.Options{
		Context:         ctx,
		LocalStorage:    local,
		Storage:         local,
		ExemplarStorage: s.storage,
		QueryEngine:     s.engine,
		LookbackDelta:   lookback,
		ScrapeManager:   s.scraper,
		RuleManager:     s.rules,
		Notifier: notifier.NewManager(
			&notifier.Options{Registerer: s.registry}, model.UTF8Validation, s.logger,
		),
		Version:                    &web.PrometheusVersion{},
		NotificationsGetter:        func() []notifications.Notification { return nil },
		NotificationsSub:           func() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false },
		ListenAddresses:            []string{address},
		CORSOrigin:                 regexp.MustCompile("^$"),
		ReadTimeout:                timeout,
		ExternalURL:                &url.URL{Scheme: "http", Host: address},
		RoutePrefix:                "/",
		RemoteReadConcurrencyLimit: 1,
		Gatherer:                   s.registry,
		Registerer:                 s.registry,
	})
	if err := handler.ApplyConfig(s.configuration); err != nil {
		return err
	}
	handler.SetReady(web.Ready)
	return handler.Run(ctx, []net.Listener{listener}, "")
}

// localStorage is the storage with what the API for administrators, which is switched off, wants of it.
type localStorage struct{ *tsdb.DB }

func (s localStorage) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

func (s localStorage) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

func (s localStorage) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }

func (s localStorage) Delete(ctx context.Context, from, to int64, matchers ...*labels.Matcher) error {
	return s.DB.Delete(ctx, from, to, matchers...)
}

var _ storage.SampleAndChunkQueryable = (*tsdb.DB)(nil)
