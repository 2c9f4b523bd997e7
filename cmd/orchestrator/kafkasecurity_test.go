package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/devstack"
	"milepost/internal/publish"
)

// authority is a certificate authority for one test.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	der  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, dir: t.TempDir(), key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	if a.der, err = x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pem() string { return block("CERTIFICATE", a.der) }

// issue makes a certificate for 127.0.0.1 and its key, PKCS #8, both PEM.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, k.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func (a *authority) file(name, content string) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// secured starts a real broker with a listener for SASL over TLS and one that wants client certificates.
func secured(t *testing.T, ca *authority) *devstack.Kafka {
	t.Helper()
	if testing.Short() {
		t.Skip("a real broker takes 20 s; run without -short")
	}
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		t.Skip("no Java for a real broker")
	}
	cert, key := ca.issue("broker")
	inLine := func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }
	const module = "org.apache.kafka.common.security."
	settings := map[string]string{
		"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": inLine(cert), "ssl.keystore.key": inLine(key),
		"ssl.truststore.type": "PEM", "ssl.truststore.certificates": inLine(ca.pem()),
		"listener.name.mutual.ssl.client.auth":                       "required",
		"listener.name.secure.sasl.enabled.mechanisms":               "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"listener.name.secure.plain.sasl.jaas.config":                module + `plain.PlainLoginModule required user_alice="wonder";`,
		"listener.name.secure.scram-sha-256.sasl.jaas.config":        module + "scram.ScramLoginModule required;",
		"listener.name.secure.scram-sha-512.sasl.jaas.config":        module + "scram.ScramLoginModule required;",
		"listener.name.secure.oauthbearer.sasl.jaas.config":          module + `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
		"listener.name.secure.oauthbearer.connections.max.reauth.ms": "3600000",
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	kafka, err := devstack.StartKafka(ctx, devstack.KafkaConfig{
		Settings: settings, Listeners: map[string]string{"SECURE": "SASL_SSL", "MUTUAL": "SSL"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Stop(); err != nil {
			t.Error(err)
		}
	})
	plain, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		bob := kadm.UpsertSCRAM{User: "bob", Mechanism: mechanism, Iterations: 4096, Password: "builder"}
		altered, err := kadm.NewClient(plain).AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{bob})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return kafka
}

// token is an unsigned JWT: the broker of this test believes it.
func token(subject string, life time.Duration) string {
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, now, now+int64(life.Seconds()))
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
}

// Design 12: the flags for TLS, client certificates, SASL PLAIN, SCRAM and OAUTHBEARER against a real broker: what fits does the service's
// work at its start, what does not is refused and says why.
func TestKafkaSecurity(t *testing.T) {
	ca, stranger := newAuthority(t, "authority"), newAuthority(t, "stranger")
	kafka := secured(t, ca)
	cert, key := ca.issue("client")
	foreignCert, foreignKey := stranger.issue("client")
	trust := []string{"--kafka-ca", ca.file("ca.pem", ca.pem())}
	mine := []string{"--kafka-cert", ca.file("cert.pem", cert), "--kafka-key", ca.file("key.pem", key)}
	foreign := []string{"--kafka-cert", stranger.file("cert.pem", foreignCert), "--kafka-key", stranger.file("key.pem", foreignKey)}
	user := func(mechanism, user, password string) []string {
		return []string{"--kafka-sasl", mechanism, "--kafka-user", user, "--kafka-password", password}
	}
	bearer := func(name, token string) []string {
		return []string{"--kafka-sasl", "oauthbearer", "--kafka-token-file", ca.file(name, token)}
	}
	for _, c := range []struct {
		name     string
		listener string
		flags    [][]string
		refused  string // part of the error; empty: it works
	}{
		{"plain", "SECURE", [][]string{trust, user("plain", "alice", "wonder")}, ""},
		{"plain, wrong password", "SECURE", [][]string{trust, user("plain", "alice", "land")}, "SASL_AUTHENTICATION_FAILED"},
		{"scram-sha-256", "SECURE", [][]string{trust, user("scram-sha-256", "bob", "builder")}, ""},
		{"scram-sha-512", "SECURE", [][]string{trust, user("scram-sha-512", "bob", "builder")}, ""},
		{"scram, wrong password", "SECURE", [][]string{trust, user("scram-sha-512", "bob", "destroyer")}, "SASL_AUTHENTICATION_FAILED"},
		{"oauthbearer", "SECURE", [][]string{trust, bearer("good", token("carol", time.Hour))}, ""},
		{"oauthbearer, no longer valid", "SECURE", [][]string{trust, bearer("late", token("carol", -time.Hour))}, "invalid_token"},
		{"an authority that we do not know", "SECURE", [][]string{{"--kafka-tls"}, user("plain", "alice", "wonder")}, "certificate signed by unknown authority"},
		{"client certificate", "MUTUAL", [][]string{trust, mine}, ""},
		{"no client certificate", "MUTUAL", [][]string{trust}, "tls: "},
		{"client certificate of a stranger", "MUTUAL", [][]string{trust, foreign}, "tls: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o kafkaOptions
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.flags(fs)
			args := []string{"--brokers", kafka.ListenerAddrs(c.listener)[0]}
			for _, f := range c.flags {
				args = append(args, f...)
			}
			if err := fs.Parse(args); err != nil {
				t.Fatal(err)
			}
			err := startWork(t, o)
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("got %v, want it to work", err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("got %v, want %q", err, c.refused)
			case publish.Away(err):
				t.Errorf("%v is taken for brokers that are away: the worker would wait for ever", err)
			}
		})
	}
}

// startWork does over the options what a worker does with the brokers at its start.
func startWork(t *testing.T, o kafkaOptions) error {
	t.Helper()
	security, err := o.client()
	if err != nil {
		return err
	}
	cfg := publish.ClientConfig{Brokers: o.brokers, Options: append(security, kgo.RequestRetries(2), kgo.RetryTimeout(5*time.Second))}
	client, err := kgo.NewClient(publish.ClientOptions(cfg)...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	topics := publish.Topics{Prefix: "secure"}
	if _, err := publish.EnsureTopics(ctx, client, publish.TopicsSpec{Topics: topics, Raw: "secure.raw", Create: true, RawPartitions: 1}); err != nil {
		return err
	}
	p, err := publish.New(publish.Config{Client: cfg, Group: "g", Raw: "secure.raw", Topics: topics, Instance: "i"}, nil, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Check(ctx)
}

// Design 12: contradictions among the flags are told before anything is dialled.
func TestKafkaSecurityFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]kafkaOptions{
		"--kafka-user and --kafka-password need --kafka-sasl": {user: "u"},
		"--kafka-sasl is \"gssapi\"":                          {sasl: "gssapi"},
		"--kafka-cert and --kafka-key go together":            {cert: "c.pem"},
		"--kafka-ca: open":                                    {ca: filepath.Join(t.TempDir(), "none.pem")},
		"holds no certificate":                                {ca: empty},
		"oauthbearer needs --kafka-token-file":                {sasl: "oauthbearer"},
		"--kafka-token-file needs --kafka-sasl oauthbearer":   {token: empty},
		"the file is empty":                                   {sasl: "oauthbearer", token: empty},
	} {
		if _, err := o.client(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
