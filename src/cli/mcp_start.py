# What `tidemark mcp` runs in the interpreter that it chose; mcp.cpp passes the options on.
import sys

# The current folder may be one of recordings of others: no module comes from there.
sys.path[:] = [folder for folder in sys.path if folder]
try:
    from tidemark.mcp.__main__ import main
except ImportError as error:
    sys.stderr.write(
        f"tidemark: {sys.executable} has no tidemark.mcp ({error}): install Tidemark's package into it, by "
        f"`{sys.executable} -m pip install '.[mcp]'` in a clone, or name another interpreter with --python\n"
    )
    sys.exit(2)
sys.exit(main(sys.argv[1:]))
