package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/pgstore"
	"milepost/internal/publish"
	"milepost/internal/stream"
)

// operatorOptions are the settings of the verbs that need no worker. They take every setting of run, so that one configuration file
// serves both, and show only those that matter here.
type operatorOptions struct {
	serviceOptions
	asJSON bool
	asked  bool // the brokers were named
}

// flags adds run's settings; help shows those that nearly every call needs, and the named ones.
func (o *operatorOptions) flags(fs *pflag.FlagSet, more ...string) {
	o.serviceOptions.flags(fs)
	shown := append([]string{"config", "dsn", "group", "raw"}, more...)
	fs.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON object")
}

// settle fills the settings in and checks those that every such verb needs.
func (o *operatorOptions) settle(fs *pflag.FlagSet) error {
	sources, err := settle(fs)
	if err != nil {
		return err
	}
	o.asked = sources["brokers"] != fromDefault
	var problems []error
	for _, x := range []struct{ flag, value string }{{"dsn", string(o.dsn)}, {"group", o.group}, {"raw", o.raw}} {
		if x.value == "" {
			problems = append(problems, fmt.Errorf("--%s must be set (or %s)", x.flag, envName(x.flag)))
		}
	}
	return usage(errors.Join(problems...))
}

// store opens the database and checks that it has this program's tables. Unlike a worker an operator does not wait for one that is away.
func (o *operatorOptions) store(ctx context.Context) (*pgstore.Store, error) {
	cfg := pgstore.DefaultConfig()
	cfg.DSN, cfg.Pooler, cfg.MaxConns = string(o.dsn), o.pooler, 2
	s, err := pgstore.Open(ctx, cfg)
	if err != nil {
		return nil, usage(err)
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// brokers makes a client of the brokers; it connects with its first request.
func (o *operatorOptions) client(s streams) (*kgo.Client, error) {
	security, err := o.kafka.client()
	if err != nil {
		return nil, usage(err)
	}
	log, err := newLogger(s, logOptions{format: o.log.format, level: "error"})
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(publish.ClientOptions(publish.ClientConfig{Brokers: o.kafka.brokers, Log: log, Options: security})...)
	if err != nil {
		return nil, usage(fmt.Errorf("--brokers: %w", err))
	}
	return client, nil
}

// brokerWait bounds what an operator's verb asks of the brokers.
const brokerWait = 10 * time.Second

// ends reads where the raw topic's partitions end, their high watermarks.
func (o *operatorOptions) ends(ctx context.Context, s streams) (map[int32]int64, error) {
	client, err := o.client(s)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, brokerWait)
	defer cancel()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, o.raw)
	if err == nil {
		err = listed.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("the brokers have no topic %s (another name: --raw)", o.raw)
	}
	if err != nil {
		return nil, fmt.Errorf("read where topic %s ends: %w", o.raw, err)
	}
	ends := map[int32]int64{}
	listed.Each(func(l kadm.ListedOffset) { ends[l.Partition] = l.Offset })
	return ends, nil
}

// keyText prints a key for people: as it is where that is unmistakable, else quoted.
func keyText(k stream.Key) string {
	if q := strconv.Quote(string(k)); q[1:len(q)-1] != string(k) || strings.ContainsAny(string(k), " ") || k == "" {
		return q
	}
	return string(k)
}

// binary gives bytes for JSON: as text where they are text, else to be shown as base64.
func binary(b []byte) (text *string, raw []byte) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

func printJSON(s streams, v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
