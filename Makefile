# `make demo` and `make test` are all a newcomer needs; both set up .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# What .venv is made from: the tools' settings, which are in pyproject.toml too, are no part of it.
WANTED := awk '/^\[/ { wanted = /^\[(build-system|project)/ } wanted' pyproject.toml | cat - constraints.txt
EXAMPLE := rms_norm_residual
# Bytecode is kept, whatever this shell says: each process of the tests compiles all of them without it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-corpora test-containers test-tritons benchmarks kernelbench realcode opinfo modules mutants pictures check browser setup clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/pytorch-to-triton convert examples/$(EXAMPLE).py:$(EXAMPLE) --into converted/$(EXAMPLE)

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal

# Whole plans of cases over every kernel of the corpora, random functions, and the Tritons that are set up. SHARE=2/3
# runs the second third.
test-corpora: $(READY)
	PYTORCH_TO_TRITON_PYTHONS=$$(ls -d $(CURDIR)/.tritons/*/bin/python 2>/dev/null | paste -sd:) \
		$(BIN)/pytest -m corpora -n 2 --dist worksteal $(if $(SHARE),--share $(SHARE))

# The recipe of references/untrusted_kernels.md, with Docker or Podman. CONTAINER_BUILD_OPTIONS go to the build.
test-containers: $(READY)
	$(BIN)/pytest -m containers

# The oldest release of Triton that is supported, the usual one and the newest, an environment each.
TRITONS := 3.6.0 3.7.1 3.9.0

test-tritons: $(READY) $(TRITONS:%=.tritons/%/ready)
	PYTORCH_TO_TRITON_PYTHONS=$$(echo $(TRITONS:%=$(CURDIR)/.tritons/%/bin/python) | tr ' ' ':') \
		$(BIN)/pytest -m "" tests/tritons

.tritons/%/ready:
	$(PYTHON) -m venv .tritons/$*
	.tritons/$*/bin/pip install --quiet --disable-pip-version-check triton==$*
	@touch $@

# The reference kernels beside their peers, on a GPU; ARGS are options of reference_benchmarks/run.py. Run again, it
# goes on where it ended. Of liger-kernel and flag_gems it times what is installed.
benchmarks: $(READY)
	$(BIN)/python -m reference_benchmarks.run $(ARGS)

# KB is a checkout of KernelBench; ARGS are options of kernelbench/run.py. Run again, it goes on where it ended.
kernelbench: $(READY)
	@test -n "$(KB)" || { echo "Name a checkout of KernelBench: make kernelbench KB=path/to/KernelBench" >&2; exit 2; }
	$(BIN)/python -m kernelbench.run "$(KB)" $(ARGS)

# Functions of real models beside torch.compile; ARGS are options of realcode/run.py. Run again, it goes on where it
# ended.
realcode: $(READY)
	$(BIN)/python -m realcode.run $(ARGS)

# PyTorch's operators at their sample inputs; ARGS are options of yardsticks/opinfo.py. Run again, it goes on where it
# ended.
opinfo: $(READY)
	$(BIN)/python -m yardsticks.opinfo $(ARGS)

# MODULES is a checkout of pytorch-jit-paritybench; ARGS are options of yardsticks/modules.py. Run again, it goes on
# where it ended.
modules: $(READY)
	@test -n "$(MODULES)" || { echo "Name a checkout of pytorch-jit-paritybench: make modules MODULES=path/to/it" >&2; exit 2; }
	$(BIN)/python -m yardsticks.modules "$(MODULES)" $(ARGS)

# Right kernels with one mistake each, and how many of them validate refuses; ARGS are options of mutants/run.py. Run
# again, it goes on where it ended.
mutants: $(READY)
	$(BIN)/python -m mutants.run $(ARGS)

# The pictures of the README, from a recorded run; ARGS are options of pictures/run.py.
pictures: $(READY)
	$(BIN)/python -m pictures.run $(ARGS)

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@# The standard wants the folder to bear the skill's name, which a checkout need not.
	@folder=$$(mktemp -d)/pytorch-to-triton && mkdir "$$folder" && cp -r SKILL.md references "$$folder" \
		&& $(BIN)/agentskills validate "$$folder"; status=$$?; rm -r "$$(dirname "$$folder")"; exit $$status
	@git ls-files '*.py' | xargs wc -l | awk '$$2 != "total" && $$1 > 400 { print "longer than 400 lines:", $$2, $$1 }'

# Chromium, in which the tests open an audit's page; from Debian's packages, as root.
browser:
	command -v chromium || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium)

setup: $(READY)

# Holds what was installed: made once, and again when something else is wanted.
ifneq ($(shell $(WANTED) | cmp - $(READY) 2>&1),)
.PHONY: $(READY)
endif
$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "$(PYTHON) is missing or older than 3.11. Name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "$(PYTHON) has no venv module. On Debian: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV); PyTorch is large, so this takes minutes the first time."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(WANTED) > $(READY)

clean:
	rm -rf $(VENV) .tritons build dist converted
