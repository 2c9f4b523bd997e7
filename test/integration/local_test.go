//go:build integration

package integration_test

import (
	"context"
	"errors"
	"log/slog"

	"milepost/internal/devstack"
)

// startLocal runs the servers as processes of this machine.
func startLocal(ctx context.Context, logger *slog.Logger) (*Stack, error) {
	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Logger: logger})
	if err != nil {
		return nil, err
	}
	kafka, err := devstack.StartKafka(ctx, devstack.KafkaConfig{Logger: logger, Settings: map[string]string{
		// With protocol consumer it is the broker that says when a member is dead.
		"group.consumer.min.session.timeout.ms": "6000", "group.consumer.session.timeout.ms": "6000",
		"group.consumer.min.heartbeat.interval.ms": "1000", "group.consumer.heartbeat.interval.ms": "1000",
	}})
	if err != nil {
		return nil, errors.Join(err, postgres.Stop())
	}

	return &Stack{
		Kind: "local processes", Brokers: kafka.Addrs(), DSN: postgres.DSN(),
		Broker: localBroker{kafka}, Database: postgres,
		stop: func() error { return errors.Join(kafka.Stop(), postgres.Stop()) },
	}, nil
}

// localBroker is the only node of a local Kafka.
type localBroker struct{ kafka *devstack.Kafka }

func (b localBroker) Kill() error                       { return b.kafka.Kill(0) }
func (b localBroker) Restart(ctx context.Context) error { return b.kafka.Restart(ctx, 0) }
func (b localBroker) Pause() error                      { return b.kafka.Pause(0) }
func (b localBroker) Resume() error                     { return b.kafka.Resume(0) }
