// Package composecheck holds the test of docker-compose.yml and of what it mounts, which reads them as docker compose, Prometheus and Grafana
// would. It is a module of its own so that nobody who builds the worker needs compose-go. make verify runs it.
package composecheck
