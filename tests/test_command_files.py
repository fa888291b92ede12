"""No command overwrites a file that it reads, or writes one file twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from emu2.cli import cli
from emu2.errors import EmulatorError
from emu2.file_roles import FileType
from emu2.words_cli import assemble3, gpfn3_package_main
from pycompiler.cli import commands
from pycompiler.errors import PycompilerError
from pycompiler.models.__main__ import main as models
from pycompiler.report.codegen_dir import MODEL_ONNX, files_of

#: Parameters that take any text but name no file to read or write, or a folder of pages.
NO_FILES = {
    *("emu2 explain code", "emu2 spec name", "emu2 bench only", "emu2 dap host"),
    *("emu2 conformance other", "emu2 conformance assembler"),
    *("pycompiler explain code", "pycompiler dashboard folders", "pycompiler dashboard out"),
    *("emu2 sdk install folder", "emu2 new folder"),
    *("pycompiler memory draw", "emu2 bench spec_name", "emu2 bench threads"),
    # A folder; its programs are compared when they are found.
    "emu2 conformance folder",
    # Commands that write no file.
    *("emu2 debug file", "emu2 debug attach", "emu2 debug config", "emu2 debug load",
      "emu2 debug load_state"),
    # Its `--loader` gives the file another name; `claim` compares that.
    "assemble3 out",
    # Memory files name others; `memory_files` compares them all.
    *(f"{tool} {name}" for tool in ("emu2 run", "gpfn3_package_main") for name in
      ("config", "load", "save")),
}  # fmt: skip
TEXTS = ("settings", "given", "device", "machine", "dims", "shapes")


def every_command(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for own in command.list_commands(context):
        found = command.get_command(context, own)
        assert found is not None
        yield from every_command(found, f"{name} {own}")


COMMANDS = dict(
    [
        *every_command(cli, "emu2"),
        *every_command(commands, "pycompiler"),
        ("assemble3", assemble3),
        ("gpfn3_package_main", gpfn3_package_main),
    ]
)


def files(command: click.Command, *, written: bool) -> list[click.Parameter]:
    types = [(one, one.type) for one in command.params]
    return [one for one, type in types if isinstance(type, FileType) and type.written == written]


def test_every_parameter_that_names_a_file_has_a_role() -> None:
    for name, command in COMMANDS.items():
        for one in command.params:
            text = isinstance(one.type, click.Path) or type(one.type) is type(click.STRING)
            if text and one.name not in TEXTS:
                assert f"{name} {one.name}" in NO_FILES


def pairs() -> Iterator[tuple[str, str, str]]:
    for name, command in COMMANDS.items():
        outputs = files(command, written=True)
        for out in outputs:
            others = [*files(command, written=False), *(one for one in outputs if one is not out)]
            yield from ((name, str(one.name), str(out.name)) for one in others)


PAIRS = list(pairs())


def given(command: click.Command, name: str, path: Path) -> list[str]:
    (found,) = (one for one in command.params if one.name == name)
    option = isinstance(found, click.Option)
    return [max(found.opts, key=len), str(path)] if option else [str(path)]


def needed(command: click.Command, names: set[str], path: Path) -> list[str]:
    """Return the arguments without which a command is a wrong use."""
    found = [one for one in command.params if one.required and one.name not in names]
    words = {"settings": "steps=1", "other": "true"}
    return [
        word
        for one in found
        for word in (
            [max(one.opts, key=len), words.get(str(one.name), str(path))]
            if isinstance(one, click.Option)
            else [str(path)]
        )
    ]


@pytest.mark.parametrize("way", ["name", "link", "hard link", "link to nothing"])
def test_outputs_are_other_files(tmp_path: Path, way: str) -> None:
    assert len(PAIRS) > 40
    one, other, spare = tmp_path / "a.vsm", tmp_path / "b", tmp_path / "spare"
    spare.write_text("spare")
    if way != "link to nothing":
        one.write_text("kept")
    if way == "hard link":
        os.link(one, other)
    elif way != "name":
        other.symlink_to(one.name)
    for name, first, second in PAIRS:
        if way == "link to nothing" and first == "spec_name":
            continue  # a machine is a name, unless there is a file of it
        command = COMMANDS[name]
        arguments = [
            *given(command, first, one),
            *given(command, second, one if way == "name" else other),
            *needed(command, {first, second}, spare),
        ]
        # Behind a program, options are those of the program.
        named = [k for k, text in enumerate(arguments) if text.startswith("--")]
        options = [at for k in named for at in (k, k + 1)]
        rest = [text for k, text in enumerate(arguments) if k not in options]
        arguments = [*(arguments[k] for k in options), *rest]
        done = CliRunner().invoke(command, arguments)
        problem = done.exception
        assert isinstance(problem, EmulatorError | PycompilerError), (name, arguments, done.output)
        assert problem.code in ("F0008", "P0010"), (name, arguments, problem)
        assert "would overwrite" in problem.message
        assert one.exists() == (way != "link to nothing")
        assert way == "link to nothing" or one.read_text() == "kept"


def test_streams_and_devices_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "a.vsm"
    path.write_text("nop\n")
    arguments = ["run", str(path), "--spec", "mini", "-d", "/dev/null", "--report", "/dev/null"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    arguments = ["run", "-", "-d", "-", "--spec", "mini"]
    assert CliRunner().invoke(cli, arguments, "nop\n").exit_code == 0


def test_a_codegen_dir_stands_for_the_files_of_a_compile(tmp_path: Path) -> None:
    for path in files_of(tmp_path):
        path.write_text("kept")
    inside, model = tmp_path / "report.json", tmp_path / MODEL_ONNX
    table = [
        ["profile", str(tmp_path), "--json", str(inside)],
        ["run", str(tmp_path), "-o", str(inside)],
        ["app", str(tmp_path), "-o", str(tmp_path / "model.app")],
        ["compile", str(model), "-o", str(tmp_path)],
        ["profile", str(tmp_path), "--compare", str(tmp_path), "--draw", str(model)],
    ]
    for arguments in table:
        problem = CliRunner().invoke(commands, arguments).exception
        assert isinstance(problem, PycompilerError)
        assert problem.code == "P0010"
    assert {path.read_text() for path in files_of(tmp_path)} == {"kept"}


def test_the_data_of_a_model_and_the_files_that_options_name(tmp_path: Path) -> None:
    model, data, spec = (tmp_path / name for name in ("m.onnx", "trace.json", "layout.my.txt"))
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> g (float[4] x) => (float[4] y) <float[4] w>'
        "{ y = Add(x, w) }"
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    onnx.save(made, model, save_as_external_data=True, location=data.name, size_threshold=0)
    spec.write_text("[]")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    compile, out = ["compile", str(model), "--device", "emu2:mini", "-o"], str(tmp_path)
    sweep = ["sweep", str(model), "--machine", "mini", "--set", "lm_words=1x"]
    table = [
        [*compile, out],
        [*compile, f"{out}/o", "-O", f"out_onnx={model}"],
        [*compile, f"{out}/o", "-O", f"out_onnx={data}"],
        [*compile, f"{out}/o", "-O", f"out_onnx={spec}", "-O", f"layout_spec={spec}"],
        [*compile, out, "-O", f"gemm_layout_spec={spec}"],
        ["partition", str(model), "--device", "emu2:mini", "--app", str(data)],
        ["partition", str(model), "--device", "emu2:mini", "-O", f"out_onnx={model}"],
        [*sweep, "--json", str(data)],
        [*sweep, "--draw", str(spec), "-O", f"layout_spec={spec}"],
    ]
    for arguments in table:
        problem = CliRunner().invoke(commands, arguments).exception
        assert isinstance(problem, PycompilerError), arguments
        assert problem.code == "P0010", problem
        assert {path: path.read_bytes() for path in before} == before, arguments


def test_the_container_of_the_loader_is_what_is_written(tmp_path: Path) -> None:
    source = tmp_path / "a.vsm"
    source.write_text("nop\n")
    arguments = [str(source), "--spec", "mini", "-o", str(source)]
    assert isinstance(CliRunner().invoke(assemble3, arguments).exception, EmulatorError)
    assert source.read_text() == "nop\n"
    assert CliRunner().invoke(assemble3, [*arguments, "--loader"]).exit_code == 0
    assert source.read_text() == "nop\n"
    container = tmp_path / "a.vsm.idma.dat"
    container.unlink()
    container.symlink_to(source)
    problem = CliRunner().invoke(assemble3, [*arguments, "--loader"]).exception
    assert isinstance(problem, EmulatorError)
    assert source.read_text() == "nop\n"


def test_programs_of_a_folder_and_what_memory_files_name(tmp_path: Path) -> None:
    program, data, memory = (tmp_path / name for name in ("a.vsm", "a.bin", "m.json"))
    program.write_text("nop\n")
    data.write_bytes(bytes(8))
    save = '{"save": [{"region": "pdm0", "file": "%s", "offset": 0, "length": 8}]}'
    load = '{"load": [{"region": "pdm0", "file": "a.bin", "offset": 0}]}'
    run = ["run", str(program), "--spec", "mini", "-c", str(memory)]
    table = [
        (save % "a.vsm", run),
        (save % "out.bin", [*run, "-d", str(tmp_path / "out.bin")]),
        (load, [*run, "--report", str(data)]),
        (load, [*run, "--trace", str(memory)]),
        ("{}", ["conformance", str(tmp_path), "--other", "true", "--json", str(program)]),
        ("{}", ["conformance", str(tmp_path), "--other", "true", "--json", f"{tmp_path}/a.json"]),
        ("{}", ["run", str(program), "--spec", str(memory), "-d", str(memory)]),
    ]
    for text, arguments in table:
        memory.write_text(text)
        problem = CliRunner().invoke(cli, arguments).exception
        assert isinstance(problem, EmulatorError), arguments
        assert problem.code == "F0008"
        assert (program.read_text(), data.read_bytes()) == ("nop\n", bytes(8))
        assert memory.read_text() == text


def test_the_table_of_models_and_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert models(["torchvision:resnet18", "--json", out, "--markdown", out]) == 1
    assert "error[P0010]" in capsys.readouterr().err
