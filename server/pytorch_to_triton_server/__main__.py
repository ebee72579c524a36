"""`python -m pytorch_to_triton_server` is `pytorch-to-triton`."""

import sys

from pytorch_to_triton_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
