package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// testCase holds series, rules and queries with a time of their own, which begins at 0. One line of stdin.
type testCase struct {
	// Between two values of a series, between two evaluations of the rules, and between two values of an answer.
	IntervalSeconds float64 `json:"intervalSeconds"`
	// In the notation of Prometheus' unit tests: `metric{label="x"} 0+10x20 _ 5`.
	Series []string `json:"series"`
	// A file of rules, or nothing.
	Rules   string  `json:"rules"`
	Queries []query `json:"queries"`
}

type query struct {
	Expression   string  `json:"expression"`
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
	StepSeconds  float64 `json:"stepSeconds"`
}

// answer is one line of stdout. The results have the order of the queries.
type answer struct {
	Error   string          `json:"error,omitempty"`
	Results json.RawMessage `json:"results,omitempty"`
}

type point struct {
	Labels map[string]string `json:"labels"`
	// Pairs of seconds and value. A value is a string, because JSON has no infinity.
	Values [][2]any `json:"values"`
}

func evaluate(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 256<<20)
	encoder := json.NewEncoder(output)
	for lines.Scan() {
		var each testCase
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			return err
		}
		var reply answer
		results, err := each.run()
		if err != nil {
			reply.Error = err.Error()
		} else if reply.Results, err = json.Marshal(results); err != nil {
			return err
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (c testCase) run() ([][]point, error) {
	directory, err := os.MkdirTemp("", "prometheus-evaluate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	options := tsdb.DefaultOptions()
	options.WALSegmentSize = -1
	options.MinBlockDuration = (1000 * 24 * time.Hour).Milliseconds()
	options.MaxBlockDuration = options.MinBlockDuration
	options.RetentionDuration = 0
	database, err := tsdb.Open(filepath.Join(directory, "data"), logger, nil, options, nil)
	if err != nil {
		return nil, err
	}
	defer database.Close()
	engine := newEngine(logger)
	defer engine.Close()
	last, err := c.load(database)
	if err != nil {
		return nil, err
	}
	if c.Rules != "" {
		if err := c.evaluateRules(directory, database, engine, logger, last); err != nil {
			return nil, err
		}
	}
	found := make([][]point, 0, len(c.Queries))
	for _, each := range c.Queries {
		points, err := each.run(engine, database)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.Expression, err)
		}
		found = append(found, points)
	}
	return found, nil
}

// load appends all series in the order of time, and returns the number of the last step.
func (c testCase) load(database *tsdb.DB) (int, error) {
	type described struct {
		labels labels.Labels
		values []parser.SequenceValue
	}
	all := make([]described, 0, len(c.Series))
	last := 0
	for _, line := range c.Series {
		set, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(line)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", line, err)
		}
		all = append(all, described{set, values})
		last = max(last, len(values)-1)
	}
	for step := 0; step <= last; step++ {
		appender := database.Appender(context.Background())
		for _, each := range all {
			if step >= len(each.values) || each.values[step].Omitted {
				continue
			}
			at := seconds(float64(step) * c.IntervalSeconds).UnixMilli()
			if _, err := appender.Append(0, each.labels, at, each.values[step].Value); err != nil {
				return 0, fmt.Errorf("%s: %w", each.labels, err)
			}
		}
		if err := appender.Commit(); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func (c testCase) evaluateRules(
	directory string, database *tsdb.DB, engine *promql.Engine, logger *slog.Logger, last int,
) error {
	file := filepath.Join(directory, "rules.yaml")
	if err := os.WriteFile(file, []byte(c.Rules), 0o600); err != nil {
		return err
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		ExternalURL: &url.URL{},
		QueryFunc:   rules.EngineQueryFunc(engine, database),
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		Context:     context.Background(),
		Appendable:  database,
		Queryable:   database,
		Logger:      logger,
	})
	groups, failed := manager.LoadGroups(
		time.Duration(c.IntervalSeconds*float64(time.Second)), labels.EmptyLabels(), "", nil, false, file,
	)
	if len(failed) > 0 {
		return failed[0]
	}
	for step := 0; step <= last; step++ {
		for _, group := range groups {
			group.Eval(context.Background(), seconds(float64(step)*c.IntervalSeconds))
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil {
					return fmt.Errorf("%s: %w", rule.Name(), err)
				}
			}
		}
	}
	return nil
}

func (q query) run(engine *promql.Engine, database storage.Queryable) ([]point, error) {
	ctx := context.Background()
	step := time.Duration(q.StepSeconds * float64(time.Second))
	prepared, err := engine.NewRangeQuery(
		ctx, database, nil, q.Expression, seconds(q.StartSeconds), seconds(q.EndSeconds), step,
	)
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	result := prepared.Exec(ctx)
	matrix, err := result.Matrix()
	if err != nil {
		return nil, err
	}
	points := make([]point, 0, len(matrix))
	for _, series := range matrix {
		each := point{Labels: series.Metric.Map()}
		for _, sample := range series.Floats {
			each.Values = append(each.Values, [2]any{float64(sample.T) / 1000, model.SampleValue(sample.F).String()})
		}
		points = append(points, each)
	}
	return points, nil
}

func seconds(value float64) time.Time {
	return time.UnixMilli(int64(value * 1000)).UTC()
}
