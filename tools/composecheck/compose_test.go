package composecheck

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// project reads docker-compose.yml as docker compose does, with the profiles; "*" stands for all.
func project(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	roadMap := filepath.Join(t.TempDir(), "map.osm.pbf")
	if err := os.WriteFile(roadMap, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithProfiles(profiles), cli.WithEnv([]string{"MAP=" + roadMap}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := cli.ProjectFromOptions(t.Context(), o)
	if err != nil {
		t.Fatalf("docker compose would not take docker-compose.yml: %v", err)
	}
	return p
}

// A20: docker compose takes the file, in each profile; who needs nothing but the worker gets nothing else, and nothing waits for what its
// profile does not start or for the health of what tells none.
func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile string
		want    []string
	}{
		{"", []string{"kafka", "migrate", "orchestrator", "postgres", "topics"}},
		{"observability", []string{"grafana", "kafka", "migrate", "orchestrator", "postgres", "prometheus", "topics"}},
	} {
		p := project(t, c.profile)
		if got := p.ServiceNames(); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("profile %q starts %v, want %v", c.profile, got, c.want)
		}
		for name, s := range p.Services {
			for on, d := range s.DependsOn {
				other, ok := p.Services[on]
				switch {
				case !ok:
					t.Errorf("profile %q: %s waits for %s, which is not started", c.profile, name, on)
				case d.Condition == types.ServiceConditionHealthy && other.HealthCheck == nil:
					t.Errorf("%s waits for the health of %s, which tells none", name, on)
				}
			}
		}
	}
}

// A20: images are pinned by version, ports are published once and on the loopback alone, volumes are declared, and what is mounted from the
// repository is there and cannot be changed from inside.
func TestServices(t *testing.T) {
	p := project(t, "*")
	published := map[string]string{}
	for name, s := range p.Services {
		image, tag, _ := strings.Cut(s.Image, ":")
		if tag == "" || tag == "latest" {
			t.Errorf("%s: image %s is not pinned", name, s.Image)
		}
		if image == "milepost" && name != "migrate" && name != "orchestrator" {
			t.Errorf("%s runs our image", name)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published on %q", name, port.Published, port.HostIP)
			}
			if other, twice := published[port.Published]; twice {
				t.Errorf("port %s is published by %s and %s", port.Published, other, name)
			}
			published[port.Published] = name
		}
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeBind:
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
				if !v.ReadOnly {
					t.Errorf("%s may write to %s", name, v.Source)
				}
			case types.VolumeTypeVolume:
				if _, ok := p.Volumes[v.Source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, v.Source)
				}
			default:
				t.Errorf("%s: a mount of type %s", name, v.Type)
			}
		}
	}
	if len(published) < 5 {
		t.Errorf("only %d ports are published", len(published))
	}
}

// A20: each setting that the file gives a worker is one that docs/config.md lists, and the program of its health check is where the image has it.
func TestSettingsExist(t *testing.T) {
	p := project(t)
	settings := read(t, "docs/config.md")
	n := 0
	for _, name := range []string{"migrate", "orchestrator"} {
		for variable := range p.Services[name].Environment {
			if n++; !strings.Contains(settings, "`"+variable+"`") {
				t.Errorf("%s: there is no setting %s", name, variable)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d settings", n)
	}
	check := p.Services["orchestrator"].HealthCheck.Test
	if program := check[1]; !strings.Contains(read(t, "Dockerfile"), filepath.Dir(program)+"/") {
		t.Errorf("health is asked by %s, where the image has nothing", program)
	}
}

// mountedAt finds what a service has at a path inside, empty for nothing.
func mountedAt(s types.ServiceConfig, target string) string {
	for _, v := range s.Volumes {
		if v.Target == target {
			return v.Source
		}
		if rest, ok := strings.CutPrefix(target, v.Target+"/"); ok && v.Type == types.VolumeTypeBind {
			return filepath.Join(v.Source, rest)
		}
	}
	return ""
}

// A17, A20: Prometheus finds its rules where they are mounted and scrapes the worker where it listens.
func TestPrometheusMatches(t *testing.T) {
	p := project(t, "*")
	prometheus := p.Services["prometheus"]
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	file := mountedAt(prometheus, "/etc/prometheus/prometheus.yml")
	if err := yaml.Unmarshal([]byte(read(t, file)), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.RuleFiles) == 0 || len(config.ScrapeConfigs) == 0 {
		t.Fatal("no rules, or nothing to scrape")
	}
	for _, rules := range config.RuleFiles {
		source := mountedAt(prometheus, rules)
		if source == "" {
			t.Errorf("rules %s are not mounted", rules)
			continue
		}
		for _, m := range regexp.MustCompile(`job="([^"]+)"`).FindAllStringSubmatch(read(t, source), -1) {
			if config.ScrapeConfigs[0].JobName != m[1] {
				t.Errorf("an alert is about job %s, and what is scraped is %s", m[1], config.ScrapeConfigs[0].JobName)
			}
		}
	}
	for _, target := range config.ScrapeConfigs[0].StaticConfigs[0].Targets {
		name, port, _ := strings.Cut(target, ":")
		s, ok := p.Services[name]
		if !ok {
			t.Errorf("target %s is no service", target)
			continue
		}
		listen := s.Environment["MILEPOST_LISTEN"]
		if listen == nil || *listen != "0.0.0.0:"+port {
			t.Errorf("target %s, and the service listens on %v", target, listen)
		}
	}
}

// A17, A20: Grafana finds the data source and the dashboard where they are mounted, and asks Prometheus where that is.
func TestGrafanaMatches(t *testing.T) {
	p := project(t, "*")
	grafana := p.Services["grafana"]
	provisioning := mountedAt(grafana, "/etc/grafana/provisioning")
	var sources struct {
		Datasources []struct{ Type, URL string } `yaml:"datasources"`
	}
	unmarshalOnly(t, filepath.Join(provisioning, "datasources"), &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" {
		t.Fatalf("data sources: %+v", sources)
	}
	u, err := url.Parse(sources.Datasources[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := p.Services[u.Hostname()]; !ok || !slices.ContainsFunc(s.Ports, func(port types.ServicePortConfig) bool { return port.Target == 9090 }) || u.Port() != "9090" {
		t.Errorf("the data source is at %s, where no service is", u)
	}
	var boards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	unmarshalOnly(t, filepath.Join(provisioning, "dashboards"), &boards)
	if len(boards.Providers) != 1 || boards.Providers[0].Type != "file" {
		t.Fatalf("providers of dashboards: %+v", boards)
	}
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if home == nil || filepath.Dir(*home) != boards.Providers[0].Options.Path {
		t.Errorf("the first dashboard is at %v, and dashboards are taken from %s", home, boards.Providers[0].Options.Path)
	} else if source := mountedAt(grafana, *home); source == "" || !strings.Contains(read(t, source), `"title": "Milepost"`) {
		t.Errorf("there is no dashboard of ours at %s", *home)
	}
	if user := grafana.Environment["GF_AUTH_ANONYMOUS_ORG_ROLE"]; user == nil || *user != "Viewer" {
		t.Errorf("whoever comes is a %v, must be a viewer", user)
	}
}

// unmarshalOnly reads the one file of a folder.
func unmarshalOnly(t *testing.T, dir string, to any) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %d files, %v, want one", filepath.Base(dir), len(files), err)
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(dir, files[0].Name()))), to); err != nil {
		t.Fatal(err)
	}
}

// read gives a file of the repository, by its path from the root or an absolute one.
func read(t *testing.T, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
