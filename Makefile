# What a developer of isotap runs. Everything needs Go and, for the database servers that tests and the
# demo run on, the system's package manager: on Debian and Ubuntu, as root or with a sudo that asks
# for no password, MariaDB and PostgreSQL are installed when they are missing; elsewhere you are told
# what to install.

GO ?= go
# An exact version: module proxies that refuse lists of versions still have it.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
# The version that "isotap version" prints; when empty, what Go knows of the checkout.
VERSION ?=
# What "make bench" passes on.
QUICK ?=
# What "make campaign" passes on; without it every campaign goes on for a minute on each engine in each durability.
CAMPAIGN ?=
# Where the random tests begin: the same each time, for a failure to be of the change that it shows with. SEED=0 begins elsewhere
# each time.
SEED ?= 1
# How many lies "make lies" tells.
LIES ?= 1000
# One set of flags for what is built, vetted and run from source: Go compiles all of it once.
STATIC := CGO_ENABLED=0 GOFLAGS='$(strip $(GOFLAGS) -trimpath)'
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))
# The race detector needs cgo, which Go switches off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# A process under the race detector stays for a second when it exits, in case that a goroutine which still runs meets a
# race: of ninety test binaries that is a minute and a half.
GORACE := atexit_sleep_ms=50
# The tests that take the longest, which run first: what else there is runs beside them.
LONGEST := ./internal/e2e
# How many packages' long tests run at the same time: half of what they take is waiting for servers.
LONG_PACKAGES := $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))
# Where the tests look for a TiDB server (internal/testdb); its name holds TiDB's commit.
TIDB := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/isotap/tidb-server-e4e814fdc0af
TIDB_SOURCE := internal/testdb/tidb

# What the benchmarks use beside the servers (pgbench comes with PostgreSQL's), by program and package alike.
BENCH_TOOLS := sysbench haproxy pgbouncer
HOOK_MODULES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/isotap/hooks
HOOK_NODE := pg@8.23.1 mysql2@3.24.6 typeorm@1.1.1 knex@3.3.0 sequelize@6.37.8 \
	prisma@7.10.1 @prisma/client@7.10.0 @prisma/adapter-pg@7.10.1 @prisma/adapter-mariadb@7.10.0 \
	@opentelemetry/api@1.9.1 @opentelemetry/instrumentation@0.223.0 @opentelemetry/sdk-trace-node@2.12.1 \
	@opentelemetry/instrumentation-pg@0.76.0 @opentelemetry/instrumentation-mysql2@0.69.0
HOOK_PACKAGES := $(if $(shell command -v npm),,npm) python3-django python3-sqlalchemy python3-psycopg python3-psycopg2 python3-pymysql python3-mysqldb \
	php-cli php-laravel-framework php-pgsql php-mysql ruby-activerecord ruby-actionpack ruby-pg ruby-mysql2 openjdk-17-jdk-headless \
	libpostgresql-jdbc-java libmariadb-java libhibernate3-java libjavassist-java libslf4j-java

.DEFAULT_GOAL := help
.PHONY: help build demo screenshot test check test-engines mutants lies campaign field hooks bench lint vuln mariadb postgresql tidb

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/isotap, a static binary
	$(STATIC) $(GO) build -ldflags '$(LDFLAGS)' -o bin/isotap ./cmd/isotap

demo: build ## find a lost update on a throw-away server
	./bin/isotap demo

screenshot: build ## take the README's picture of a report anew (needs Chromium)
	docs/screenshot.sh bin/isotap docs/report.png

test: mariadb postgresql ## the quick tests of everything, on both engines, under the race detector (some minutes)
	@$(if $(RACE),:,echo "make test: no C compiler found: the tests run without the race detector" >&2)
	GORACE=$(GORACE) RAPID_SEED=$(SEED) $(GO) test $(RACE) -short -timeout 15m $(LONGEST) ./...

check: lint test ## check everything: format, vet, lint, "make test", and the tests that it leaves out (half an hour)
	long=$$($(STATIC) $(GO) run ./internal/longtests -first $(LONGEST)) && GORACE=$(GORACE) RAPID_SEED=$(SEED) $(GO) test $(RACE) -p $(LONG_PACKAGES) -timeout 35m $$long

test-engines: mariadb postgresql ## the tests that look at servers, on MySQL 9, MariaDB 11.8, TiDB and PostgreSQL 12 to 18 too (ENGINES=...)
	internal/testdb/engines.sh $(GO) test -count=1 -timeout 40m -p 1 ./catalog/... ./rewrite/... ./proxy/postgres ./analyzer/pgversions ./scenario/replay ./scenario/library ./internal/cases ./internal/proxyserver ./internal/e2e ./internal/engine ./internal/clone ./internal/fuzz ./explore ./serverlog/binlog

mutants: ## take out each rule of the analyzer, of its foreign and pglog and of robust in turn: a test must fail each time (some 15 minutes)
	$(GO) test ./analyzer -run TestEveryRuleIsTested -timeout 2h -mutants
	$(GO) test ./analyzer/foreign -run TestEveryRuleIsTested -timeout 2h -mutants
	$(GO) test ./analyzer/pglog -run TestEveryRuleIsTested -timeout 2h -mutants
	$(GO) test ./robust -run TestEveryConditionIsTested -timeout 2h -mutants

lies: mariadb ## tell the oracle serial 1,000 lies of a server, each of which it must tell (LIES=..., SEED=...; half an hour)
	$(GO) test ./internal/fuzz -run TestLiesAboutConcurrentTransactionsAreTold -v -timeout 4h -serial.lies $(LIES) -serial.seed $(SEED)

campaign: mariadb postgresql ## break things under load for hours (CAMPAIGN="-run kills -times 1000"): docs/reliability.md
	$(GO) run ./internal/campaign $(CAMPAIGN)

field: postgresql ## try known applications on their own suites, directly and through isotap (FIELD="-app miniflux")
	$(GO) run ./internal/field $(FIELD)

hooks: mariadb postgresql ## try the files of examples/comments with the libraries that they are for (installs these)
	@dpkg -s $(HOOK_PACKAGES) >/dev/null 2>&1 || $(if $(filter 0,$(shell id -u)),,sudo -n) apt-get install -q -y --no-install-recommends $(HOOK_PACKAGES)
	npm install --no-audit --no-fund --loglevel=error --prefix $(HOOK_MODULES) $(HOOK_NODE)
	ISOTAP_HOOKS=require PYTHON=/usr/bin/python3 ISOTAP_NODE_MODULES=$(HOOK_MODULES)/node_modules $(GO) test -count=1 -v ./examples/comments/...

bench: mariadb postgresql ## run the benchmarks (QUICK=-quick: fewer and shorter ones)
	$(GO) test -run '^$$' -bench . -benchmem ./...
	@(for tool in $(BENCH_TOOLS); do PATH="$$PATH:/usr/sbin" command -v $$tool >/dev/null || exit 1; done) || $(if $(filter 0,$(shell id -u)),,sudo -n) apt-get install -q -y --no-install-recommends $(BENCH_TOOLS)
	$(GO) run ./internal/bench/curve $(QUICK)
	$(GO) run ./internal/bench $(QUICK)
	$(GO) run ./internal/bench -load ddl $(QUICK)

lint: ## check format and style
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(STATIC) $(GO) vet ./...
	$(STATIC) $(GO) run $(STATICCHECK) ./...

vuln: ## ask Go's database of vulnerabilities about isotap and what it is made of
	@$(GO) run $(GOVULNCHECK) ./... || { status=$$?; \
		echo "make vuln: govulncheck ended with status $$status: it found something (above), or its database (https://vuln.go.dev) could not be reached, and then nothing was checked" >&2; exit $$status; }

mariadb postgresql:
	$(STATIC) $(GO) run ./internal/testdb/install $@

tidb: $(TIDB) ## build a TiDB server that the tests use from then on (some 10 minutes, once)

$(TIDB): $(addprefix $(TIDB_SOURCE)/,main.go go.mod go.sum)
	mkdir -p $(dir $@)
	cd $(TIDB_SOURCE) && $(GO) build -trimpath -ldflags '-s -w' -o $@ .
