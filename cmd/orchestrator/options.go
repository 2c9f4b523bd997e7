package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"milepost/internal/commit"
	"milepost/internal/consumer"
	"milepost/internal/fleet"
	"milepost/internal/pgstore"
	"milepost/internal/publish"
	"milepost/internal/telemetry"
)

// secretFlag reads a telemetry.Secret; a flag's default is shown in help, so it has none.
type secretFlag struct{ to *telemetry.Secret }

func (f secretFlag) String() string {
	if f.to == nil {
		return ""
	}
	return f.to.String()
}

func (f secretFlag) Set(s string) error {
	*f.to = telemetry.Secret(s)
	return nil
}

func (f secretFlag) Type() string { return "secret" }

// kafkaOptions say how to reach the brokers.
type kafkaOptions struct {
	brokers  []string
	useTLS   bool
	ca       string
	cert     string
	key      string
	sasl     string
	user     string
	password telemetry.Secret
	token    string
}

func (o *kafkaOptions) flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.brokers, "brokers", []string{"127.0.0.1:9092"}, "Kafka bootstrap addresses, host:port,…")
	fs.BoolVar(&o.useTLS, "kafka-tls", false, "speak TLS with the brokers")
	fs.StringVar(&o.ca, "kafka-ca", "", "`file` with the brokers' certificate authority (PEM); empty: the system's")
	fs.StringVar(&o.cert, "kafka-cert", "", "`file` with our client certificate (PEM)")
	fs.StringVar(&o.key, "kafka-key", "", "`file` with our client certificate's key (PEM)")
	fs.StringVar(&o.sasl, "kafka-sasl", "", "plain, scram-sha-256, scram-sha-512 or oauthbearer; empty: no authentication")
	fs.StringVar(&o.user, "kafka-user", "", "user for SASL")
	fs.Var(secretFlag{&o.password}, "kafka-password", "password for SASL; better in the environment than on the command line")
	fs.StringVar(&o.token, "kafka-token-file", "", "`file` with the bearer token for oauthbearer; read again at each authentication")
}

// client gives the clients' options for security; brokers are set apart.
func (o *kafkaOptions) client() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if o.useTLS || o.ca != "" || o.cert != "" {
		c, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	switch o.sasl {
	case "":
		if o.user != "" || o.password != "" {
			return nil, errors.New("--kafka-user and --kafka-password need --kafka-sasl")
		}
	case "plain":
		opts = append(opts, kgo.SASL(plain.Auth{User: o.user, Pass: string(o.password)}.AsMechanism()))
	case "scram-sha-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: o.user, Pass: string(o.password)}.AsSha256Mechanism()))
	case "scram-sha-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: o.user, Pass: string(o.password)}.AsSha512Mechanism()))
	case "oauthbearer":
		if _, err := bearerToken(o.token); err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(oauth.Oauth(func(context.Context) (oauth.Auth, error) { return bearerToken(o.token) })))
	default:
		return nil, fmt.Errorf("--kafka-sasl is %q, must be plain, scram-sha-256, scram-sha-512 or oauthbearer", o.sasl)
	}
	if o.token != "" && o.sasl != "oauthbearer" {
		return nil, errors.New("--kafka-token-file needs --kafka-sasl oauthbearer")
	}
	return opts, nil
}

// bearerToken reads the token. Whoever renews it writes the file anew.
func bearerToken(path string) (oauth.Auth, error) {
	if path == "" {
		return oauth.Auth{}, errors.New("--kafka-sasl oauthbearer needs --kafka-token-file")
	}
	b, err := readSmall(path, maxSecretFile)
	if err != nil {
		return oauth.Auth{}, fmt.Errorf("--kafka-token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return oauth.Auth{}, errors.New("--kafka-token-file: the file is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return oauth.Auth{}, errors.New("--kafka-token-file: want one word of printable characters")
	}
	return oauth.Auth{Token: token}, nil
}

func (o *kafkaOptions) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := readSmall(o.ca, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--kafka-ca: %s holds no certificate", o.ca)
		}
	}
	if (o.cert == "") != (o.key == "") {
		return nil, errors.New("--kafka-cert and --kafka-key go together")
	}
	if o.cert != "" {
		cert, err := readSmall(o.cert, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-cert: %w", err)
		}
		key, err := readSmall(o.key, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("--kafka-cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// logOptions say how to log.
type logOptions struct{ format, level string }

func (o *logOptions) flags(fs *pflag.FlagSet, level string) {
	fs.StringVar(&o.format, "log", string(telemetry.FormatAuto), "log lines as text or json; auto: text on a terminal")
	fs.StringVar(&o.level, "log-level", level, "debug, info, warn or error")
}

// serviceOptions are the settings of a worker.
type serviceOptions struct {
	kafka kafkaOptions
	log   logOptions
	dsn   telemetry.Secret

	solving  solvingOptions
	counting countingOptions

	config, group, raw, prefix, workload   string
	roadMap, catalog                       string
	mode, publish, protocol, topics, start string
	onDataLoss                             string
	stateRetention                         time.Duration
	listen                                 string
	operators                              telemetry.Operators
	traces                                 wholeTraces
	geometry                               string // of events
	lanes, solvers, replication            int
	rawPartitions, maxRecordBytes          int32
	sessionTimeout, maxAge, drainGrace     time.Duration
	pooler                                 bool

	profiles string // of vehicles, see mapFlags
}

func (o *serviceOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.config, "config", "", "TOML `file` with settings, named as the flags")
	o.kafka.flags(fs)
	fs.Var(secretFlag{&o.dsn}, "dsn", "Postgres connection URL; may hold a password, so better in MILEPOST_DSN")
	fs.BoolVar(&o.pooler, "dsn-pooler", false, "a transaction pooler (PgBouncer) stands before Postgres")
	fs.StringVar(&o.group, "group", "milepost", "Kafka consumer group")
	fs.StringVar(&o.raw, "raw", "milepost.raw", "topic with the raw observations, keyed by vehicle")
	fs.StringVar(&o.prefix, "prefix", "milepost", "prefix of our own topics: PREFIX.matched, PREFIX.ledger, PREFIX.dead-letter")
	fs.StringVar(&o.workload, "workload", workloadFleet, "what records mean: fleet (positions of vehicles), or counter (each is numbered within its key: for tests and measurements)")
	mapFlags(fs, &o.roadMap, &o.profiles)
	fs.StringVar(&o.catalog, "catalog", "", "in place of --map: TOML `file` with regions, each on a map of its own; read again on SIGHUP")
	fs.StringVar(&o.mode, "mode", "prepared", "durability: prepared (the decision is in Postgres before it is published) or deferred (published first, persisted in batches)")
	fs.StringVar(&o.publish, "publish", "transactional", "publication: transactional (exactly once) or idempotent (at least once, repeats are the same bytes)")
	fs.StringVar(&o.protocol, "protocol", "classic", "group protocol: classic, or consumer (KIP-848, brokers from 4.3; its session time-out is the brokers' setting)")
	fs.StringVar(&o.topics, "topics", "check", "create: make missing topics; check: missing topics are an error")
	fs.Int32Var(&o.rawPartitions, "raw-partitions", 0, "partitions of the raw topic where --topics create makes it; 0: it must exist")
	fs.IntVar(&o.replication, "replication", 0, "replication factor of topics that we make; 0: the broker's default")
	fs.Int32Var(&o.maxRecordBytes, "max-record-bytes", 1_000_012, "the most that a record of ours may have; our topics must take it (max.message.bytes)")
	fs.StringVar(&o.start, "start", "earliest", "where a group without a position begins, first start only: earliest or latest")
	fs.StringVar(&o.onDataLoss, "on-data-loss", "stop", "where retention has overtaken a frontier: stop the partition, or reset: go on, each key that had history with a data loss reset")
	fs.DurationVar(&o.stateRetention, "state-retention", 0, "after how long without a commit a key's state expires: its next record begins a segment, with a reset of reason expired; 0: never")
	fs.IntVar(&o.lanes, "lanes", 3, "transactional producers that take turns")
	fs.IntVar(&o.solvers, "solvers", 0, "solvers in this process; 0: one a core")
	o.solving.flags(fs)
	o.counting.flags(fs)
	fs.DurationVar(&o.sessionTimeout, "session-timeout", 10*time.Second, "after how long without a heartbeat the group gives our partitions away")
	fs.DurationVar(&o.drainGrace, "drain-grace", 20*time.Second, "how long a revoked or stopping partition may take to finish what is in hand")
	fs.DurationVar(&o.maxAge, "max-age", 0, "how far an event's time may be from its record's Kafka timestamp; 0: any")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:9464", "address for /livez, /readyz, /metrics and what operators ask for")
	operatorFlags(fs, &o.operators)
	o.traces.flags(fs)
	fs.StringVar(&o.geometry, "event-geometry", string(fleet.Coordinates), "lines in matched events: geojson, polyline6, wkt or none; change it with the group drained in mode deferred")
	o.log.flags(fs, "info")
}

// validate checks the settings of a worker: everything that is wrong at once.
func (o *serviceOptions) validate() error {
	return errors.Join(o.absent(), o.wrong())
}

// absent says which settings that have no default were not given.
func (o *serviceOptions) absent() error {
	var problems []error
	if o.dsn == "" {
		problems = append(problems, mustBeSet("dsn"))
	}
	if o.roadMap+o.catalog == "" && o.workload != workloadCounter {
		problems = append(problems, mustBeSet("map"))
	}
	return usage(errors.Join(problems...))
}

func mustBeSet(flag string) error { return fmt.Errorf("--%s must be set (or %s)", flag, envName(flag)) }

// wrong says what is wrong with the settings that were given; what the parts of a worker check is asked of them.
func (o *serviceOptions) wrong() error {
	problems := o.wrongHere()
	if len(problems) == 0 {
		problems = o.wrongBelow()
	}
	return usage(errors.Join(problems...))
}

func (o *serviceOptions) wrongHere() []error {
	var problems []error
	oneOf := func(flag, got string, allowed ...string) {
		if !slices.Contains(allowed, got) {
			problems = append(problems, fmt.Errorf("--%s is %q, must be %s", flag, got, strings.Join(allowed, " or ")))
		}
	}
	oneOf("workload", o.workload, workloadFleet, workloadCounter)
	problems = append(problems, o.wrongCounting()...)
	oneOf("mode", o.mode, "prepared", "deferred")
	oneOf("publish", o.publish, "transactional", "idempotent")
	oneOf("protocol", o.protocol, "classic", "consumer")
	if o.mode == "deferred" && o.publish == "idempotent" {
		problems = append(problems, errors.New("--publish idempotent needs --mode prepared: decided again after a crash, "+
			"an observation could be published under the same identity with other bytes"))
	}
	oneOf("topics", o.topics, "create", "check")
	oneOf("start", o.start, "earliest", "latest")
	oneOf("solver", o.solving.solver, solveInProcess, solveRemote)
	if err := o.solving.validate(); err != nil {
		problems = append(problems, err)
	}
	oneOf("on-data-loss", o.onDataLoss, "stop", "reset")
	for flag, value := range map[string]string{"group": o.group, "raw": o.raw, "prefix": o.prefix} {
		if value == "" {
			problems = append(problems, mustBeSet(flag))
		}
	}
	if o.roadMap != "" && o.catalog != "" {
		problems = append(problems, errors.New("--map and --catalog exclude each other"))
	}
	if len(o.kafka.brokers) == 0 {
		problems = append(problems, errors.New("--brokers must name at least one host:port"))
	}
	if o.maxRecordBytes < 0 {
		problems = append(problems, fmt.Errorf("--max-record-bytes is %d, must not be negative", o.maxRecordBytes))
	}
	if o.solvers < 0 {
		problems = append(problems, fmt.Errorf("--solvers is %d, must be at least 0", o.solvers))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

// wrongBelow asks the parts of a worker, which are not made yet.
func (o *serviceOptions) wrongBelow() []error {
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	security, err := o.kafka.client()
	note(err)
	_, err = newLogger(streams{err: io.Discard}, o.log)
	note(err)
	note(checkOperators(o.operators))
	note(o.traces.validate())
	if _, err := fleet.ParseGeometry(o.geometry); err != nil && o.geometry != "" { // dev has no such flag
		note(fmt.Errorf("--event-geometry: %w", err))
	}
	if o.traces.atOnce > 0 && o.workload != workloadFleet {
		note(errors.New("--match-traces needs --workload fleet: others have no road map"))
	}
	publishing := o.publishing("worker")
	note(publishing.Validate())
	consuming := o.consuming("worker")
	consuming.Client = security
	note(consuming.Validate())
	return problems
}

func (o *serviceOptions) database() pgstore.Config {
	c := pgstore.DefaultConfig()
	c.DSN, c.Pooler = string(o.dsn), o.pooler
	return c
}

func (o *serviceOptions) publishing(instance string) publish.Config {
	return publish.Config{
		Group: o.group, Raw: o.raw, Topics: publish.Topics{Prefix: o.prefix}, Instance: instance, Lanes: o.lanes,
		Mode: commit.PublishMode(o.publish), MaxRecordBytes: o.maxRecordBytes,
	}
}

func (o *serviceOptions) consuming(instance string) consumer.Config {
	c := consumer.DefaultConfig()
	if n := int64(o.maxRecordBytes); n > 0 { // room for what the broker counts beside the record
		c.Partition.DeadLetterBytes = max(n-n/10, 1<<10)
	}
	c.Group, c.Topic, c.LedgerTopic, c.Instance = o.group, o.raw, publish.Topics{Prefix: o.prefix}.Ledger(), instance
	c.OnDataLoss, c.StateRetention = consumer.DataLossPolicy(o.onDataLoss), o.stateRetention
	c.Start, c.Lanes, c.SessionTimeout = consumer.StartPolicy(o.start), o.lanes, o.sessionTimeout
	c.HeartbeatInterval = min(c.HeartbeatInterval, o.sessionTimeout/4)
	c.DrainGrace, c.Partition.DrainGrace = o.drainGrace, o.drainGrace
	c.Partition.Reasons = reasons(o.workload)
	c.Partition.Deferred = o.mode == "deferred"
	c.Protocol, c.PublishMode = consumer.Protocol(o.protocol), commit.PublishMode(o.publish)
	if c.PublishMode == commit.Idempotent {
		c.Lanes = 0 // no transactional ids: a next owner has none to initialise
	}
	c.Partition.Jobs, c.Partition.Run = o.solving.maxInFlight, o.solving.catchUp
	return c
}
