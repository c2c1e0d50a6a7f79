# What commands that are part of Tidemark's Python package run in its interpreter: `-c THIS MODULE ARGUMENTS...`. The module has
# a function main(arguments). package_command.cpp passes the words on.
import importlib
import sys

# The current folder may be one of recordings of others: no module comes from there.
sys.path[:] = [folder for folder in sys.path if folder]
module, *arguments = sys.argv[1:]
try:
    main = importlib.import_module(module + ".__main__").main
except ImportError as error:
    sys.stderr.write(
        f"tidemark: {sys.executable} has no {module} ({error}): install Tidemark's package into it, by "
        f"`{sys.executable} -m pip install '.[mcp]'` in a clone, or name another interpreter with "
        f"{'--python' if module == 'tidemark.mcp' else 'the variable TIDEMARK_PYTHON'}\n"
    )
    sys.exit(2)
sys.exit(main(arguments))
