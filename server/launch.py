"""Run a command of this checkout with nothing installed: `python3 launch.py serve`. Any Python 3 reads it."""

import sys

if __name__ == "__main__":
    if sys.version_info < (3, 9):
        version = sys.version.split()[0]
        sys.exit("error: %s is Python %s; the launcher needs 3.9 or newer." % (sys.executable, version))
    from pytorch_to_triton_launcher.main import main

    sys.exit(main(sys.argv[1:]))
