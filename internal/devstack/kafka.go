package devstack

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	kafkaGrace    = 20 * time.Second
	kafkaInterval = 200 * time.Millisecond
	kafkaLog      = "broker.log"
	defaultHeapMB = 512
)

// KafkaConfig configures a real Kafka cluster in KRaft mode. The zero value is
// one node on a folder of its own that Stop removes.
type KafkaConfig struct {
	// Dir holds each node's log and data. Empty: a temporary folder, removed
	// by Stop.
	Dir string
	// Brokers is the number of nodes, each a broker and a controller; 0 is 1.
	Brokers int
	// Topics are made at start, with as many replicas as there are nodes, at
	// most 3.
	Topics []Topic
	// Settings are broker settings; they win over the defaults here.
	Settings map[string]string
	// Listeners are further listeners on each node: name ("SECURE") to security
	// protocol ("SASL_SSL"). What they need stands in Settings
	// (listener.name.secure.…); the nodes themselves go on without them.
	Listeners map[string]string
	// Advertise is what clients of a further listener are told to connect to, one
	// address a node: a proxy's, say. Absent: where the node listens.
	Advertise map[string][]string
	// HeapMB is each node's Java heap in MiB; 0 is 512.
	HeapMB int
	// Logger hears about downloads and starts; nil is silent.
	Logger *slog.Logger
}

// Kafka is a running cluster. Its nodes are numbered from 0.
type Kafka struct {
	config KafkaConfig
	java   string
	jars   string
	dir    string
	owned  bool // the folder is ours to remove
	nodes  []*kafkaNode
}

type kafkaNode struct {
	id             int // Kafka's node.id, from 1
	dir            string
	port, ctrlPort int
	extra          map[string]int // port of each further listener
	process        *process
}

// StartKafka starts the cluster and returns when every node is known to every
// other. It needs Java 17, and Maven the first time. ctx bounds the start, not
// the cluster's life; Stop ends it.
func StartKafka(ctx context.Context, c KafkaConfig) (*Kafka, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Brokers = max(c.Brokers, 1)
	if c.HeapMB == 0 {
		c.HeapMB = defaultHeapMB
	}
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	jars, err := KafkaJars(ctx, c.Logger)
	if err != nil {
		return nil, err
	}
	k := &Kafka{config: c, java: java, jars: jars}
	if err := k.prepare(ctx); err != nil {
		return nil, errors.Join(err, k.removeFolder())
	}
	if err := k.startAll(ctx); err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	c.Logger.InfoContext(ctx, "kafka is up", slog.String("version", KafkaVersion), slog.Any("brokers", k.Addrs()))

	return k, nil
}

// Addrs are the bootstrap addresses, host:port, one a node.
func (k *Kafka) Addrs() []string {
	addrs := make([]string, len(k.nodes))
	for i, n := range k.nodes {
		addrs[i] = n.addr()
	}

	return addrs
}

// ListenerAddrs are the addresses of a further listener, one a node.
func (k *Kafka) ListenerAddrs(name string) []string {
	addrs := make([]string, len(k.nodes))
	for i, n := range k.nodes {
		addrs[i] = n.listener(name)
	}

	return addrs
}

// Kill ends node i with SIGKILL.
func (k *Kafka) Kill(i int) error { return k.nodes[i].process.stop(0, syscall.SIGKILL) }

// Pause stops node i in its tracks (SIGSTOP): its connections stay open and
// nothing answers. Resume lets it go on.
func (k *Kafka) Pause(i int) error { return k.nodes[i].process.pause() }

// Resume lets node i go on after Pause.
func (k *Kafka) Resume(i int) error { return k.nodes[i].process.signal(syscall.SIGCONT) }

// Restart starts node i again after Kill, on its port and data, and returns
// when it answers.
func (k *Kafka) Restart(ctx context.Context, i int) error {
	n := k.nodes[i]
	if n.process != nil && n.process.alive() {
		return fmt.Errorf("restart kafka node %d: it still runs", n.id)
	}
	if err := k.startNode(n); err != nil {
		return err
	}

	return k.awaitNode(ctx, n)
}

// Stop ends every node and removes the folder if it was temporary. It may be
// called twice.
func (k *Kafka) Stop() error {
	var errs []error
	for _, n := range k.nodes {
		if n.process == nil {
			continue
		}
		// A paused node cannot end in order.
		errs = append(errs, n.process.signal(syscall.SIGCONT), n.process.signal(syscall.SIGTERM))
	}
	for _, n := range k.nodes {
		if n.process == nil {
			continue
		}
		// The last controllers wait for a quorum that is leaving too: with
		// several nodes a short grace is enough.
		grace := kafkaGrace
		if len(k.nodes) > 1 {
			grace = 3 * time.Second
		}
		errs = append(errs, n.process.stop(grace, syscall.SIGTERM))
	}

	return errors.Join(append(errs, k.removeFolder())...)
}

// prepare makes folders, ports, configuration and the formatted log folders.
func (k *Kafka) prepare(ctx context.Context) error {
	k.dir = k.config.Dir
	if k.dir == "" {
		dir, err := os.MkdirTemp("", "milepost-kafka-")
		if err != nil {
			return fmt.Errorf("make the broker's folder: %w", err)
		}
		k.dir, k.owned = dir, true
	}
	abs, err := filepath.Abs(k.dir)
	if err != nil {
		return fmt.Errorf("resolve the broker's folder: %w", err)
	}
	k.dir = abs
	each := 2 + len(k.config.Listeners)
	ports, err := freePorts(ctx, each*k.config.Brokers)
	if err != nil {
		return err
	}
	for i := range k.config.Brokers {
		mine := ports[each*i : each*(i+1)]
		n := &kafkaNode{
			id: i + 1, dir: filepath.Join(k.dir, "node-"+strconv.Itoa(i+1)), port: mine[0], ctrlPort: mine[1], extra: map[string]int{},
		}
		for at, name := range slices.Sorted(maps.Keys(k.config.Listeners)) {
			n.extra[name] = mine[2+at]
		}
		k.nodes = append(k.nodes, n)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] &= 0x7f        // else one id in 64 begins with a dash, and the storage tool takes it for an option
	clusterID := base64.RawURLEncoding.EncodeToString(id)
	for _, n := range k.nodes {
		if err := k.format(ctx, n, clusterID); err != nil {
			return err
		}
	}

	return nil
}

// format writes the node's configuration and formats its log folder. The data
// of an earlier start on the same folder is gone: its ports are, too.
func (k *Kafka) format(ctx context.Context, n *kafkaNode, clusterID string) error {
	if err := os.RemoveAll(n.dir); err != nil {
		return fmt.Errorf("clear node %d's folder: %w", n.id, err)
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return fmt.Errorf("make node %d's folder: %w", n.id, err)
	}
	if err := os.WriteFile(n.configFile(), []byte(k.properties(n)), 0o644); err != nil { //nolint:gosec // no secret in it
		return fmt.Errorf("write node %d's configuration: %w", n.id, err)
	}
	_, err := runTool(ctx, command{name: "kafka's storage tool", path: k.java, dir: n.dir, args: []string{
		"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", k.classPath(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.configFile(),
	}}, "")

	return err
}

func (k *Kafka) properties(n *kafkaNode) string {
	voters := make([]string, len(k.nodes))
	for i, v := range k.nodes {
		voters[i] = fmt.Sprintf("%d@127.0.0.1:%d", v.id, v.ctrlPort)
	}
	replicas := strconv.Itoa(min(len(k.nodes), 3))
	inSync := "1"
	if len(k.nodes) >= 3 {
		inSync = "2"
	}
	settings := map[string]string{
		"process.roles": "broker,controller", "node.id": strconv.Itoa(n.id),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", n.addr(), n.ctrlPort),
		"advertised.listeners":           "PLAINTEXT://" + n.addr(),
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name":     "PLAINTEXT",
		"log.dirs":                       filepath.Join(n.dir, "data"),

		"offsets.topic.replication.factor": replicas, "offsets.topic.num.partitions": "8",
		"transaction.state.log.replication.factor": replicas, "transaction.state.log.min.isr": inSync,
		"transaction.state.log.num.partitions":             "8",
		"share.coordinator.state.topic.replication.factor": replicas, "share.coordinator.state.topic.min.isr": inSync,
		"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false",
	}
	for name, protocol := range k.config.Listeners {
		settings["listeners"] += "," + name + "://" + n.listener(name)
		advertised := n.listener(name)
		if other := k.config.Advertise[name]; len(other) >= n.id {
			advertised = other[n.id-1]
		}
		settings["advertised.listeners"] += "," + name + "://" + advertised
		settings["listener.security.protocol.map"] += "," + name + ":" + protocol
	}
	maps.Copy(settings, k.config.Settings)
	lines := make([]string, 0, len(settings))
	for name, value := range settings {
		lines = append(lines, name+"="+value+"\n")
	}
	slices.Sort(lines)

	return strings.Join(lines, "")
}

func (k *Kafka) startAll(ctx context.Context) error {
	for _, n := range k.nodes {
		if err := k.startNode(n); err != nil {
			return err
		}
	}
	for _, n := range k.nodes {
		if err := k.awaitNode(ctx, n); err != nil {
			return err
		}
	}

	return k.makeTopics(ctx)
}

func (k *Kafka) startNode(n *kafkaNode) error {
	logFile := filepath.Join(n.dir, kafkaLog)
	if err := rotate(logFile); err != nil {
		return err
	}
	proc, err := startProcess(command{
		name: "kafka node " + strconv.Itoa(n.id), path: k.java, dir: n.dir, logFile: logFile, deathSignal: syscall.SIGKILL,
		args: []string{
			fmt.Sprintf("-Xmx%dm", k.config.HeapMB), "-cp", k.classPath(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"kafka.Kafka", n.configFile(),
		},
	})
	if err != nil {
		return err
	}
	n.process = proc

	return nil
}

// awaitNode waits until the node answers and sees all live nodes.
func (k *Kafka) awaitNode(ctx context.Context, n *kafkaNode) error {
	want := 0
	for _, other := range k.nodes {
		if other.process != nil && other.process.alive() {
			want++
		}
	}

	return n.process.waitReady(ctx, kafkaInterval, func(ctx context.Context) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(n.addr()), kgo.RetryTimeout(time.Second), kgo.DialTimeout(time.Second))
		if err != nil {
			return err
		}
		defer client.Close()
		brokers, err := kadm.NewClient(client).ListBrokers(ctx)
		if err != nil {
			return err
		}
		if len(brokers) < want {
			return fmt.Errorf("%d of %d nodes known", len(brokers), want)
		}

		return nil
	})
}

func (k *Kafka) makeTopics(ctx context.Context) error {
	if len(k.config.Topics) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addrs()...))
	if err != nil {
		return fmt.Errorf("make topics: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, t := range k.config.Topics {
		if _, err := admin.CreateTopic(ctx, t.Partitions, int16(min(len(k.nodes), 3)), nil, t.Name); err != nil {
			return fmt.Errorf("make topic %s: %w", t.Name, err)
		}
	}

	return nil
}

func (k *Kafka) removeFolder() error {
	if !k.owned {
		return nil
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("remove the broker's folder: %w", err)
	}

	return nil
}

func (k *Kafka) classPath() string { return filepath.Join(k.jars, "*") }

func (n *kafkaNode) addr() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

func (n *kafkaNode) listener(name string) string {
	return "127.0.0.1:" + strconv.Itoa(n.extra[name])
}

func (n *kafkaNode) configFile() string { return filepath.Join(n.dir, "server.properties") }
