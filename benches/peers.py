"""Virtual environments of the benches: each peer at a fixed version, in the bench's own folder."""
import os
import subprocess
import sys
import venv


def environment(folder, name, packages):
    """The Python of an environment with these packages, made when it is not there yet."""
    home = os.path.join(os.path.abspath(folder), "environments", name)
    python = os.path.join(home, "bin", "python")
    wanted = os.path.join(home, "packages")
    if not os.path.exists(wanted) or open(wanted).read() != "\n".join(packages):
        venv.create(home, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        with open(wanted, "w") as file:
            file.write("\n".join(packages))
    return python


def run_inside(folder, name, packages):
    """Starts the program again with that Python, unless it runs there already."""
    python = environment(folder, name, packages)
    if os.path.abspath(sys.prefix) != os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python, *sys.argv])


PEERS = ["duckdb==2.0.1", "polars==2.1.0", "tpchgen-cli==4.0.0"]
# It asks for an older Polars.
DATACOMPY = ["datacompy==1.1.0"]
