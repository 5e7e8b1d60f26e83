# The project's chores. `make` alone prints what there is.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh

BIN := .venv/bin
CDK := node_modules/.bin/cdk
STAGE ?= main
# Test processes for two cores: twice as many, because the end-to-end tests spend much of their time waiting.
WORKERS ?= 4
# Each process collects only the files that it runs: see tests/run. The times are in build/test-times.json.
RUN := $(BIN)/python -m tests.run --processes $(WORKERS)
# What `make test-fast` runs: nothing that is marked as slow, and nothing that has a target of its own.
QUICK := not slow and not deep and not benchmark and not tf and not engine and not pages and not e2e and not stacks
# Where `make check` writes the templates that it looks at.
CHECKED := build/checked
# Docker or podman, whichever answers: it builds images. Empty without one. Asked once, where a recipe needs it.
ENGINE = $(eval ENGINE := $(shell for each in docker podman; do $$each info >/dev/null 2>&1 && echo $$each && break; done))$(ENGINE)
# Further arguments for pytest, cdk or the demo: options, such as ARGS="-k placement", or paths, ARGS=tests/unit/market.
ARGS ?=
# The major version that is meant: without it the CDK prints eleven lines about the end of life of Node 20.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

# With it every process compiles all that it imports: the tests start hundreds of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup tensorflow pytorch runner demo demo-gang demo-services demo-tensorflow simulate demo-containers base-image images-test test test-fast test-deep
.PHONY: coverage test-containers test-engines bench gpu-check check format lint reference docs requirements
.PHONY: synth doctor bootstrap deploy roll destroy destroy-cell clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up: each stamp is newer than the requirement file that was installed -----------------------------------------

LOCAL := .venv/.installed-local
DEV := .venv/.installed-dev
NODE := node_modules/.installed

setup: $(LOCAL) ## Make .venv with the argosy command and all that local mode needs
	@echo "Ready: $(BIN)/argosy --help"
	@echo "To type argosy alone, in this shell: source $(BIN)/activate"
	@echo "In every shell: mkdir -p ~/.local/bin && ln -sf $(CURDIR)/$(BIN)/argosy ~/.local/bin/argosy"

$(LOCAL) $(DEV): .venv/.installed-%: requirements/%.txt requirements/install.sh pyproject.toml
	@requirements/install.sh $<
	@touch $@

# CPU TensorFlow is a gigabyte: it has an environment of its own, which only the targets that need it make.
TENSORFLOW := .venv-tensorflow/.installed
TENSORFLOW_FILES := requirements/local.txt containers/tensorflow-inference/requirements-cpu.txt requirements/tensorflow.txt

tensorflow: $(TENSORFLOW) ## Make .venv-tensorflow, which runs the TensorFlow images' programs

$(TENSORFLOW): $(TENSORFLOW_FILES) requirements/install.sh | $(LOCAL)
	@ENVIRONMENT=.venv-tensorflow requirements/install.sh $(TENSORFLOW_FILES)
	@touch $@

# Debian's PyTorch, because PyPI's brings 5 GB of CUDA along. Without it nothing is made, and the tests say so.
PYTORCH := .venv-pytorch/.installed
PYTORCH_FILES := containers/shared/requirements-pytorch-cpu.txt

# The target, where Debian's three packages are there; else empty.
DEBIAN := /usr/lib/python3/dist-packages
HAS_PYTORCH := $(and $(wildcard $(DEBIAN)/torch),$(wildcard $(DEBIAN)/sklearn),$(wildcard $(DEBIAN)/PIL),$(PYTORCH))

pytorch: $(PYTORCH) ## Make .venv-pytorch, which runs the PyTorch images' programs (Debian: python3-torch, python3-sklearn)

$(PYTORCH): $(PYTORCH_FILES) requirements/install.sh | $(or $(wildcard $(DEV)),$(LOCAL))
	@/usr/bin/python3 -c 'import PIL, sklearn, torch' 2>/dev/null || { echo "There is no PyTorch: apt-get install python3-pil python3-sklearn python3-torch" >&2; exit 1; }
	@ENVIRONMENT=.venv-pytorch FROM=/usr/bin/python3 COMMAND=no requirements/install.sh $(PYTORCH_FILES)
	@touch $@

# The init of every container is written in Go, which is taken from PyPI where there is none: .venv-runner.
RUNNER := build/runner/arm64/argosy-runner
RUNNER_FILES := $(wildcard containers/runner/*.go) containers/runner/go.mod containers/runner/build.sh requirements/runner.txt

runner: $(RUNNER) ## Build the runner, the init of every container, into build/runner

$(RUNNER): $(RUNNER_FILES) | $(or $(wildcard $(DEV)),$(LOCAL))
	@containers/runner/build.sh

# checkov pins versions that are not ours: it has an environment of its own.
CHECKOV := .venv-checkov/.installed

$(CHECKOV): requirements/checkov.txt requirements/install.sh | $(DEV)
	@ENVIRONMENT=.venv-checkov COMMAND=no requirements/install.sh requirements/checkov.txt
	@touch $@

# What makes the site of docs/ shares nothing with what is tested: it has an environment of its own.
DOCS := .venv-docs/.installed

$(DOCS): requirements/docs.txt requirements/install.sh | $(or $(wildcard $(DEV)),$(LOCAL))
	@ENVIRONMENT=.venv-docs COMMAND=no requirements/install.sh requirements/docs.txt
	@touch $@

$(NODE): package.json package-lock.json
	@command -v npm >/dev/null || { echo "The CDK needs Node 20 or newer with npm, and there is no npm on PATH." >&2; exit 1; }
	@echo "Installing the pinned CDK command into node_modules."
	@npm ci --silent --no-audit --no-fund --no-update-notifier
	@touch $@

# --- run and test -----------------------------------------------------------------------------------------------------

demo: $(LOCAL) ## Run the digits batch on an emulated AWS, with an interruption; results in out/demo
	@$(BIN)/argosy demo $(ARGS)

demo-services: $(LOCAL) ## Tour of services: a cluster of 1, 2 and 10 instances, deploy, update, roll back, and nothing left
	@$(BIN)/argosy demo --tour 10 $(ARGS)

demo-gang: $(LOCAL) ## Two instances add numbers together, one is taken away, and both go on from their checkpoint
	@$(BIN)/python -m tests.harness.demo_gang $(ARGS)

demo-tensorflow: $(TENSORFLOW) ## Train, classify with an interruption, and benchmark; results in out/demo-tensorflow
	@$(BIN)/python -m tests.harness.demo_tensorflow $(ARGS)

simulate: $(LOCAL) ## Run the controller in a simulated AWS: ARGS="--trials 2000" (see ARGS=--help)
	@$(BIN)/python -m tests.harness.simulate $(ARGS)

test: $(DEV) ## Run the tests (minutes, no network, no AWS)
	@$(RUN) $(ARGS)

# ARGS may name other paths than tests/unit, of which it leaves out what is slow as well.
test-fast: $(DEV) ## Run the quick unit tests, less than a minute: while you work
	@$(RUN) -m '$(QUICK)' $(if $(filter tests/%,$(ARGS)),,tests/unit) $(ARGS)

test-pages: $(DEV) ## Type the commands of the guides and of the README as they stand
	@$(RUN) -m pages tests/e2e $(ARGS)

test-deep: $(DEV) ## Run the long property and simulation tests too
	@$(RUN) --by-test -m deep --hypothesis-profile deep $(ARGS)
	@$(MAKE) coverage

test-containers: $(TENSORFLOW) ## Run the tests of the images' programs that need TensorFlow
	@.venv-tensorflow/bin/python -m tests.run --processes $(WORKERS) -o faulthandler_timeout=1800 -m tf tests/containers $(ARGS)

# A browser, node, podman and Docker are used where they are installed and work. FRAMEWORKS=no leaves TensorFlow out.
FRAMEWORKS ?= yes
# AWS's own engine of event rules, for tests/stacks/test_event_rules.py. Without Maven or a repository they are skipped.
EVENT_RULES := build/event-rules/.installed

$(EVENT_RULES): tests/evaluators/event_rules/pom.xml
	@mkdir -p $(@D)
	@mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D) \
		&& touch $@ || echo "There is no event-ruler: tests/stacks/test_event_rules.py will be skipped."

# An evaluator of IAM policies that is not ours, for tests/stacks/test_rights_of_calls.py (decision 61).
RIGHTS := build/rights/.installed

$(RIGHTS): $(wildcard tests/evaluators/rights/*)
	@mkdir -p $(@D) && cp $^ $(@D)
	@npm ci --prefix $(@D) --silent --no-audit --no-fund --no-update-notifier && touch $@

test-engines: $(DEV) $(HAS_PYTORCH) $(if $(shell command -v npm),$(NODE) $(RIGHTS)) $(if $(shell command -v mvn),$(EVENT_RULES)) ## Run what needs a container engine, a browser, node, PyTorch or TensorFlow
	@$(RUN) -m 'engine and not deep' $(ARGS)
	@[ $(FRAMEWORKS) = no ] || $(MAKE) test-containers

# Where no container registry is reached, the images are built on Debian's packages (as root, with debootstrap).
BASE_IMAGE := localhost/argosy-base

base-image: ## Build what stands in for the images' base without a container registry
	@containers/base/build.sh $(or $(ENGINE),podman) $(BASE_IMAGE)

demo-containers: $(LOCAL) base-image ## Run the demo with its tasks in containers, in an image that is built for it
	@$(BIN)/argosy demo --runtime $(ENGINE) --base-image $(BASE_IMAGE) --out out/demo-containers $(ARGS)

# The runs of the READMEs and of demo-tensorflow once more, in images that are built; the CPU flavours (see containers/base).
IMAGES_TESTED := tests/e2e/test_container_readmes.py $(addprefix tests/containers/test_,benchmark.py inference.py recommender.py)

images-test: $(TENSORFLOW) base-image ## Build all images and run what their READMEs say in containers
	@TEST_ENGINE=$(ENGINE) TEST_BASE_IMAGE=$(BASE_IMAGE) .venv-tensorflow/bin/python -m pytest -q -m 'tf or e2e' \
		-o faulthandler_timeout=3600 $(IMAGES_TESTED) tests/containers/test_demo_tensorflow.py -k 'readme or demo' $(ARGS)

# What launches, books, releases and reads events has to be executed branch by branch (pyproject.toml says which files).
COVERING := $(addprefix tests/unit/,api aws engine lifecycle market messages model scheduler test_handlers.py)
COVERING += tests/scenarios tests/properties/test_message_properties.py

coverage: $(DEV) ## Check that launch, lifecycle, events and release are covered branch by branch
	@$(BIN)/coverage erase
	@$(RUN) --coverage $(COVERING) $(ARGS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

bench: $(DEV) ## Measure what has a floor, one after the other, and print the figures
	@$(BIN)/python -m pytest -q -s -m benchmark tests/benchmarks $(ARGS)

gpu-check: $(LOCAL) ## Check whole GPUs, shares, training and inference on this machine's GPU, offline in four minutes
	@$(BIN)/python -m tests.harness.gpu_check $(ARGS)

# --- check ------------------------------------------------------------------------------------------------------------

# cdk-nag runs inside synth. W3005 is the CDK's own redundant DependsOn. The functions' packages do not change a template.
check: lint docs $(NODE) $(CHECKOV) ## Check format, lint, types, imports, Dockerfiles, requirement files, links, templates
	@rm -rf $(CHECKED)
	$(CDK) synth --quiet --context bundle=source --context nag=true --context examples=true --output $(CHECKED)
	$(BIN)/cfn-lint --ignore-checks W3005 -- $(CHECKED)/*.template.json
	CKV_SKIP_PACKAGE_UPDATE_CHECK=true .venv-checkov/bin/checkov --config-file stacks/checkov.yaml --directory $(CHECKED)
	@echo "All checks passed."

lint: $(DEV) ## The part of check that needs no Node: all but the templates
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint containers/*/Dockerfile
	$(BIN)/python requirements/export.py --check
	$(BIN)/python -m pytest -q tests/unit/test_repository.py tests/unit/test_structure.py tests/unit/test_prose.py

format: $(DEV) ## Format the code and repair what lint can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

reference: $(DEV) ## Write docs/reference from the code that it is about
	@$(BIN)/python -m tests.reference

docs: $(DOCS) ## Write the site of docs/ to build/site; a link that leads nowhere fails it
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --config-file tests/site/mkdocs.yml
	@! grep -rnoE '<(script|link|img|iframe)[^>]* (src|href)="?(https?:)?//[^ >]*' build/site --include='*.html'
	@echo "Written: build/site/index.html"

requirements: $(DEV) ## Write requirements/*.txt again from pyproject.toml (ARGS=--upgrade for newer versions)
	$(BIN)/python requirements/export.py --uv $(BIN)/uv $(ARGS)

# --- AWS --------------------------------------------------------------------------------------------------------------

synth: $(DEV) $(NODE) ## Write the CloudFormation templates to cdk.out (needs no account)
	$(CDK) synth --quiet --context stage=$(STAGE) $(ARGS)

doctor: $(LOCAL) ## What does the AWS account lack for a deployment, and what to type (STAGE=main)
	@$(BIN)/argosy doctor --stage $(STAGE) $(ARGS)

bootstrap: $(DEV) $(NODE) ## Prepare a Region for the CDK: ARGS=aws://ACCOUNT/REGION
	$(CDK) bootstrap $(ARGS)

# What is published stays published.
PUBLISHED = published=$$($(BIN)/python -m stacks.published_images -c stage=$(STAGE) -c engine=$(ENGINE) $(ARGS))
DEPLOY = $(PUBLISHED) && CDK_DOCKER=$(or $(ENGINE),docker) \
	$(CDK) deploy --all -c stage=$(STAGE) -c engine=$(ENGINE) -c "published=$$published" $(ARGS)

# CHECKED_ACCOUNT=no deploys without the doctor's leave.
CHECKED_ACCOUNT ?= yes

deploy: $(DEV) $(NODE) $(RUNNER) ## Deploy to the AWS account of your credentials (STAGE=main)
	@$(BIN)/python -m stacks.preflight --ask=$(CHECKED_ACCOUNT) -c stage=$(STAGE) -c engine=$(ENGINE) $(ARGS)
	@$(BIN)/python -m stacks.amis -c stage=$(STAGE) -c engine=$(ENGINE) $(ARGS)
	$(DEPLOY)

# New instances start from the newest AMIs; those that there are live on. The pins go into cdk.context.json.
roll: $(DEV) $(NODE) $(RUNNER) ## Pin the newest AMIs and deploy them; running tasks are not touched (STAGE=main)
	@$(BIN)/python -m stacks.amis --newest -c stage=$(STAGE) -c engine=$(ENGINE) $(ARGS)
	$(DEPLOY)

# With the same ARGS as deploy: they decide which stacks there are.
destroy: $(DEV) $(NODE) ## Take the deployment down, instances included, and say what stays (STAGE=main)
	@$(BIN)/python -m stacks.stays -c stage=$(STAGE) -c engine=any $(ARGS)
	$(CDK) destroy --all -c stage=$(STAGE) -c bundle=source -c engine=any $(ARGS)

# CELL is a Region that the settings name (with the ARGS of deploy): its instances end and its tasks are done elsewhere.
# After that deploy without it.
destroy-cell: $(DEV) $(NODE) ## Take one further cell down, instances included (STAGE=main CELL=eu-west-1)
	@stack=$$($(BIN)/python -m stacks.stays --cell '$(CELL)' -c stage=$(STAGE) -c engine=any $(ARGS)) && \
	$(CDK) destroy "$$stack" -c stage=$(STAGE) -c bundle=source -c engine=any $(ARGS)

clean: ## Remove everything that was made here, .venv and out/ included
	rm -rf .venv .venv-tensorflow .venv-pytorch .venv-checkov .venv-docs .venv-runner node_modules cdk.out build out dist argosy.egg-info .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
