#!/usr/bin/env python3
"""Writes the configuration of a Hugging Face model to a file, for the presets of `tidemark sweep`, which then run without a
network.

    python model_config.py OUTPUT --model_name meta-llama/Meta-Llama-3-8B --needs torch transformers

Needs no GPU and imports no PyTorch. If something is missing, stdout names it in one line, and the exit code is 1.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path


def fail(message):
    print(message, flush=True)
    sys.exit(1)


def from_hub(name, token):
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()
    return Path(hf_hub_download(name, "config.json", token=token))


def configuration_text(args):
    file = Path(args.config or Path(args.model_name) / "config.json")
    try:
        if not args.config and not Path(args.model_name).is_dir():
            file = from_hub(args.model_name, args.token)
        text = file.read_text()
        if "model_type" not in json.loads(text):
            fail(f"{file}: not the configuration of a model: it has no model_type")
        return text
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        if args.config:
            fail(f"{file}: cannot be read as the configuration of a model: {reason}")
        fail(f"the configuration of {args.model_name} could not be had: give it with --config FILE, the model's config.json ({reason})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", metavar="OUTPUT", help="is not written again where it is there")
    parser.add_argument("--model_name", help="on the Hugging Face hub, or a folder")
    parser.add_argument("--config", metavar="FILE", help="the model's config.json")
    parser.add_argument("--token", help="access token for the hub")
    parser.add_argument("--needs", nargs="*", default=[], metavar="PACKAGE", help="packages that the interpreter has to have")
    args = parser.parse_args()
    missing = [name for name in args.needs if importlib.util.find_spec(name) is None]
    if missing:
        command = f"{sys.executable} -m pip install {' '.join(name for name in args.needs if name != 'torch')}"
        fail(f"{sys.executable} has no {', '.join(missing)}: {command}, or name another interpreter with --python")
    output = Path(args.output)
    if output.exists() and not args.config:
        return
    text = configuration_text(args)
    if output.exists() and output.read_text() != text:
        fail(f"{output}: the trials there are of another configuration of the model; name another folder")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)


if __name__ == "__main__":
    main()
