//go:build integration

package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	kafkaImage    = "apache/kafka:4.4.0"
	postgresImage = "postgres:17"
	password      = "integration"
)

// dockerServer is one container, reached at a fixed port of this host so that
// it is found again after a restart.
type dockerServer struct {
	container testcontainers.Container
	docker    *testcontainers.DockerClient
	ready     func(ctx context.Context) error
}

// startContainers runs the servers through testcontainers-go.
func startContainers(ctx context.Context) (s *Stack, err error) {
	// testcontainers panics where it finds no Docker host at all.
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("no Docker daemon: %v", r)
		}
	}()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("no Docker daemon: %w", err)
	}
	ping, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := docker.Ping(ping, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("no Docker daemon: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	host, err := dockerHost(ctx)
	if err != nil {
		return nil, err
	}
	broker, err := startKafkaContainer(ctx, docker, net.JoinHostPort(host, ports[0]), ports[0])
	if err != nil {
		return nil, fmt.Errorf("kafka in a container: %w", err)
	}
	dsn := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", password),
		Host: net.JoinHostPort(host, ports[1]), Path: "/postgres", RawQuery: "sslmode=disable",
	}
	database, err := startPostgresContainer(ctx, docker, dsn.String(), ports[1])
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgres in a container: %w", err), broker.stop())
	}

	return &Stack{
		Kind: "containers", Brokers: []string{net.JoinHostPort(host, ports[0])}, DSN: dsn.String(),
		Broker: broker, Database: database,
		stop: func() error { return errors.Join(broker.stop(), database.stop()) },
	}, nil
}

// startKafkaContainer runs one KRaft node. The broker speaks to itself (markers
// of transactions) on a listener of its own: the address that clients use is
// not there inside the container.
func startKafkaContainer(ctx context.Context, docker *testcontainers.DockerClient, addr, port string) (*dockerServer, error) {
	env := map[string]string{
		"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": "broker,controller",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                         "1@localhost:9093",
		"KAFKA_LISTENERS":                                        "PLAINTEXT://:9092,BROKER://:9094,CONTROLLER://:9093",
		"KAFKA_ADVERTISED_LISTENERS":                             "PLAINTEXT://" + addr + ",BROKER://localhost:9094",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":                   "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"KAFKA_CONTROLLER_LISTENER_NAMES":                        "CONTROLLER",
		"KAFKA_INTER_BROKER_LISTENER_NAME":                       "BROKER",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":                     "8",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
		"KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS":             "8",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":                 "0",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                        "false",
		"KAFKA_HEAP_OPTS":                                        "-Xmx512m",
	}
	image := cmp.Or(os.Getenv("MILEPOST_KAFKA_IMAGE"), kafkaImage)
	s, err := runContainer(ctx, docker, image, "9092/tcp", port, env)
	if err != nil {
		return nil, err
	}
	s.ready = func(ctx context.Context) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DialTimeout(time.Second), kgo.RetryTimeout(time.Second))
		if err != nil {
			return err
		}
		defer client.Close()

		return client.Ping(ctx)
	}

	return s, s.awaitOrStop(ctx)
}

func startPostgresContainer(ctx context.Context, docker *testcontainers.DockerClient, dsn, port string) (*dockerServer, error) {
	env := map[string]string{"POSTGRES_USER": "postgres", "POSTGRES_PASSWORD": password, "POSTGRES_DB": "postgres"}
	image := cmp.Or(os.Getenv("MILEPOST_POSTGRES_IMAGE"), postgresImage)
	s, err := runContainer(ctx, docker, image, "5432/tcp", port, env)
	if err != nil {
		return nil, err
	}
	s.ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}

		return conn.Close(ctx)
	}

	return s, s.awaitOrStop(ctx)
}

func runContainer(ctx context.Context, docker *testcontainers.DockerClient, image, inside, outside string, env map[string]string) (*dockerServer, error) {
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image: image, Env: env, ExposedPorts: []string{inside},
			HostConfigModifier: func(hc *container.HostConfig) {
				hc.PortBindings = network.PortMap{network.MustParsePort(inside): {{
					HostIP: netip.MustParseAddr("0.0.0.0"), HostPort: outside,
				}}}
			},
		},
		Started: true,
	})
	if err != nil {
		if c != nil {
			err = errors.Join(err, testcontainers.TerminateContainer(c))
		}

		return nil, err
	}

	return &dockerServer{container: c, docker: docker}, nil
}

func (s *dockerServer) awaitOrStop(ctx context.Context) error {
	if err := s.await(ctx); err != nil {
		return errors.Join(err, s.stop())
	}

	return nil
}

// await waits until the server answers twice in a row: Postgres' official
// image starts a server for its own use first.
func (s *dockerServer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	answers := 0
	for {
		err := s.ready(ctx)
		if err == nil {
			if answers++; answers == 2 {
				return nil
			}
		} else {
			answers = 0
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w (last: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// The daemon is told without a test's context, so that a server is never left
// paused.
func (s *dockerServer) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.docker.ContainerKill(ctx, s.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	if err != nil {
		return err
	}
	wait := s.docker.ContainerWait(ctx, s.container.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-wait.Error:
		return err
	case <-wait.Result:
		return nil
	}
}

func (s *dockerServer) Restart(ctx context.Context) error {
	if err := s.container.Start(ctx); err != nil {
		return err
	}

	return s.await(ctx)
}

func (s *dockerServer) Pause() error {
	_, err := s.docker.ContainerPause(context.Background(), s.container.GetContainerID(), client.ContainerPauseOptions{})

	return err
}

func (s *dockerServer) Resume() error {
	_, err := s.docker.ContainerUnpause(context.Background(), s.container.GetContainerID(), client.ContainerUnpauseOptions{})

	return err
}

func (s *dockerServer) stop() error { return testcontainers.TerminateContainer(s.container) }

// dockerHost is where published ports are.
func dockerHost(ctx context.Context) (string, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", fmt.Errorf("find the Docker host: %w", err)
	}
	defer func() { _ = provider.Close() }()

	return provider.DaemonHost(ctx)
}

// freePorts returns n ports that nobody listens on now.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp4", ":0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}

	return ports, nil
}
