"""Run a command of this checkout with nothing installed: `python3 server/launch.py serve`.

Finds an environment that has what the checkout needs, or makes one; any Python 3 can start it, and says what
is wrong where none will do.
"""

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 9):
        sys.exit(
            "error: %s is Python %d.%d; the launcher needs Python 3.9 or newer, the kernels 3.11 or newer.\n"
            "Run it with a newer Python." % (sys.executable, sys.version_info[0], sys.version_info[1])
        )
    from pytorch_to_triton_launcher.main import main

    sys.exit(main(sys.argv[1:]))
