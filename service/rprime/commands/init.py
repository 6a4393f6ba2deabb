"""The first gate of a repository: rules that the test set can show, a baseline, and a CI job."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, NoReturn

from typer import Argument, Option

from rprime import __version__
from rprime.commands.exit_status import attempting, put, refuse, say
from rprime.commands.options import ColumnsOption, CountOption
from rprime.core.published import Json
from rprime.core.quantities import plural

if TYPE_CHECKING:
    from rprime.application import EvaluationRequest
    from rprime.client.report import GateLintReport
    from rprime.core.gates.lint import RuleLint

Ci = Literal["github", "gitlab", "shell"]

_LIMITS = ((0.02, 0.1), (0.05, 0.1), (0.1, 0.2), (0.2, 0.3), (0.3, 0.3))
"""Drops of accuracy and of the recall of a class, from the strictest on."""
_NAMES: Mapping[Ci, str] = {"github": "GitHub", "gitlab": "GitLab", "shell": "any CI"}
_WRITTEN = "# Written by `rprime init`"
_GITLAB = ".gitlab-ci.yml"
_REQUEST = Path("columns.json")
"""How the file is read, where it does not say so by its names."""
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
"""A value that YAML needs no quotes for, but for its words."""
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
_WIDTH = 98


class _Job(NamedTuple):
    """What a CI job evaluates: a file, and the project of the service that keeps it, if any.

    `chosen` are members of the request that say how the file is read, such as `columns`.
    """

    file: str
    baseline: str
    project: str | None
    chosen: Json

    @property
    def arguments(self) -> str:
        """The arguments of `rprime evaluate`, without the gates."""
        file = f"{shlex.quote(self.file)}{f' --request {_REQUEST}' if self.chosen else ''}"
        if self.project is None:
            return f"{file} --baseline {shlex.quote(self.baseline)}"
        project = f"--project {shlex.quote(self.project)} --keep-items --json-file rprime.json"
        return f"{file} --baseline alias=champion {project}"

    @property
    def inputs(self) -> Json:
        """The inputs of the action for GitHub besides the file and its gates."""
        request = {"request": str(_REQUEST)} if self.chosen else {}
        if self.project is None:
            return request | {"baseline": self.baseline}
        return request | {
            "baseline": "alias=champion",
            "server": "${{ vars.RPRIME_SERVER }}",
            "key": "${{ secrets.RPRIME_KEY }}",
            "project": self.project,
            "promote": "champion",
        }


def init(
    file: Annotated[
        str, Argument(help="What the model says now: a file as `rprime evaluate` takes it.")
    ] = "predictions.csv",
    *,
    ci: Annotated[
        Ci | None,
        Option(
            help="The CI job to write; default: that of .github or .gitlab-ci.yml, else a shell "
            "script."
        ),
    ] = None,
    project: Annotated[
        str | None,
        Option(
            help="Of the service that RPRIME_SERVER names: its alias `champion` is the baseline, "
            "in place of a file."
        ),
    ] = None,
    columns: ColumnsOption = None,
    count: CountOption = None,
    force: Annotated[bool, Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write a first gate into this folder: gates.yaml, a baseline and a CI job.

    The limits of gates.yaml are the strictest ones that the model keeps if it does not change, and
    its comments say which drop your test set can show. Files that are there stay as they are.
    """
    if not Path(file).is_file():
        refuse(
            f"there is no file {file}: write what your model says about its test items, as CSV "
            "with the columns y_true and y_pred; then run `rprime init FILE`"
        )
    ci = ci or _guessed()
    # The baseline is a file of the repository, wherever the predictions are.
    from rprime.commands.ci_request import chosen_members

    chosen = chosen_members(columns, None, count=count)
    job = _Job(file, f"champion{_suffix(Path(file))}", project, chosen)
    targets = _targets(ci, job)
    for target, write in targets.items():
        if force or not target.exists():
            with attempting(f"write {target}"):
                target.parent.mkdir(parents=True, exist_ok=True)
                say(f"wrote {target}: {write(target)}")
        else:
            say(f"{target} is there and stays as it is; --force overwrites it")
    put("\n".join(_next_steps(ci, job, list(targets))).encode() + b"\n")


def _targets(ci: Ci, job: _Job) -> dict[Path, Callable[[Path], str]]:
    """Return what writes each file and says what it is; the job comes last."""
    from rprime.commands.ci_request import assemble
    from rprime.commands.evaluation import read

    # Refuses a file that cannot be evaluated, and a name that no project can have.
    origin = {"project": job.project}
    submitted = assemble(job.file, origin=origin, chosen=job.chosen).request
    gates = partial(_write_gates, job, read(submitted, kept_there=True))
    targets: dict[Path, Callable[[Path], str]] = {Path("gates.yaml"): gates}
    if job.chosen:
        targets[_REQUEST] = partial(_write_request, job)
    if job.project is None:
        if Path(job.file).resolve() == Path(job.baseline).resolve():
            refuse(f"{job.file} has the name of the baseline: give the predictions another one")
        targets[Path(job.baseline)] = partial(_write_baseline, job.file)
    return targets | {_path_of(ci): partial(_write_job, ci, job)}


def _guessed() -> Ci:
    """Return the CI whose files are here."""
    if Path(".github").is_dir():
        return "github"
    return "gitlab" if Path(_GITLAB).exists() else "shell"


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix.lower() in {".gz", ".zst"} else [path.suffix])


def _path_of(ci: Ci) -> Path:
    """Return the file of the job; a pipeline of GitLab that somebody wrote only includes it."""
    if ci == "github":
        return Path(".github/workflows/model-quality.yml")
    if ci == "shell":
        return Path("model-quality.sh")
    there = Path(_GITLAB)
    is_ours = not there.exists() or there.read_text("utf-8", "replace").startswith(_WRITTEN)
    return there if is_ours else Path("model-quality.gitlab-ci.yml")


def _write_request(job: _Job, path: Path) -> str:
    path.write_text(json.dumps(job.chosen, indent=2) + "\n", encoding="utf-8")
    return "the columns that are read"


def _write_baseline(file: str, path: Path) -> str:
    shutil.copyfile(file, path)
    return f"the baseline, a copy of {file}"


# The rules


def _write_gates(job: _Job, evaluation_request: "EvaluationRequest", path: Path) -> str:
    """Write a file of gates that the unchanged model passes; say what it allows."""
    passing = (limits for limits in _LIMITS if _passes(job, limits))
    limits = next(passing, None) or _refuse_few(evaluation_request)
    lines = _lines(job.file, limits, evaluation_request)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"accuracy may drop by {limits[0]:g}, the recall of the classes by {limits[1]:g}"


def _members(limits: tuple[float, float]) -> Json:
    from rprime.commands.evaluate import rules_of

    return {"rules": rules_of(*limits), "effects": {"suspect": "fail"}}


def _passes(job: _Job, limits: tuple[float, float]) -> bool:
    """Whether the gate passes these predictions against themselves."""
    from rprime.commands.ci_request import assemble
    from rprime.commands.evaluation import read

    chosen = job.chosen | {"gates": _members(limits)}
    request = assemble(job.file, baseline=job.file, chosen=chosen).request
    return read(request).verdict == "pass"


def _refuse_few(evaluation_request: "EvaluationRequest") -> NoReturn:
    evidence = evaluation_request.evidence
    items, k = plural(float(evidence.table.number), "item"), plural(len(evidence.labels), "class")
    refuse(
        f"{items} in {k} are too few for a gate: even one that allows a drop of "
        f"{_LIMITS[-1][0]:g} would not pass this model against itself. Evaluate it on more items"
    )


def _lines(
    file: str, limits: tuple[float, float], evaluation_request: "EvaluationRequest"
) -> Iterator[str]:
    """Yield the lines of the file: each rule below what the test set can show of it."""
    from rprime.report.text import percent

    report, evidence = _lint(file, limits, evaluation_request), evaluation_request.evidence
    items, k = plural(float(evidence.table.number), "item"), plural(len(evidence.labels), "class")
    yield f"{_WRITTEN} for {items} in {k}. docs/gates.md explains every member."
    if report is None:
        yield "# There are too many classes to simulate which drop they can show."
    else:
        rates = percent(report.false_fail_rate), percent(report.inconclusive_rate)
        yield from _comment(
            f"An unchanged model fails this gate in {rates[0]} of runs, and leaves it inconclusive "
            f"in {rates[1]}. A drop is shown if the gate finds it in 80 % of runs."
        )
    if limits != _LIMITS[0]:
        yield from _comment(
            "These limits are wide: with stricter ones, so few items could not pass even a model "
            "that did not change."
        )
    rows: Sequence[RuleLint] = () if report is None else report.model.rules
    yield "rules:"
    overall = [_shown(row) for row in rows if row.class_ is None and row.average_of is None]
    yield from _rule(
        f"Of 100 items at most {100 * limits[0]:g} more may be wrong than before.",
        overall,
        {"index": "accuracy", "max_drop": limits[0]},
    )
    average = [_shown(row) for row in rows if row.average_of is not None]
    classes = sorted(
        (row for row in rows if row.class_ is not None),
        key=lambda row: 1 if row.detectable_drop is None else row.detectable_drop,
    )
    yield from _rule(
        f"Of 100 items of a class at most {100 * limits[1]:g} more may be missed; the average over "
        "the classes decides whether the rule passes.",
        [*average, *map(_shown, [*classes[:1], *classes[1:][-1:]])],
        {"index": "recall", "classes": "all", "max_drop": limits[1]},
    )
    yield "effects:"
    yield from _comment(
        "A class that lost more than the limit on these items fails as soon as it is shown to be "
        "worse at all.",
        "  ",
    )
    yield "  suspect: fail"


def _lint(
    file: str, limits: tuple[float, float], evaluation_request: "EvaluationRequest"
) -> "GateLintReport | None":
    """Simulate the gate; None if there are too many classes for it."""
    from rprime.commands.evaluation import answering
    from rprime.commands.lint import simulated_evidence
    from rprime.core.cells import DenseCells

    if not isinstance(evaluation_request.evidence.table.cells, DenseCells):
        return None
    say(f"simulating what {file} can show ...")
    with answering(None) as client:
        return client.lint(**simulated_evidence(evaluation_request), gates=_members(limits))


def _shown(row: "RuleLint") -> str:
    """Say which drop a rule can show."""
    from rprime.report.text import cut_text, decimal, shown

    if row.average_of is not None:
        about = "on average over the classes"
    elif row.class_ is None:
        about = f"with {plural(row.items, 'item')}"
    else:
        name = cut_text(shown(row.class_), 60)
        about = f"of class `{name}`, which has {plural(row.items, 'item')}"
    drop = "no drop" if row.detectable_drop is None else f"a drop of {decimal(row.detectable_drop)}"
    return f"{drop} {about}"


def _rule(meaning: str, drops: Sequence[str], members: Mapping[str, object]) -> Iterator[str]:
    """Yield a rule with what it means, and the drops that it can show."""
    yield from _comment(meaning, "  ")
    if drops:
        yield from _comment(f"It can show {'; '.join(drops)}.", "  ")
    first, *others = (f"{name}: {value}" for name, value in members.items())
    yield f"  - {first}"
    yield from (f"    {member}" for member in others)


def _comment(text: str, indent: str = "") -> Iterator[str]:
    """Yield a text as lines of a comment."""
    from textwrap import wrap

    prefix = f"{indent}# "
    yield from wrap(
        text, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False
    )


# The job


def _write_job(ci: Ci, job: _Job, path: Path) -> str:
    """Write the job by its template."""
    name = {"github": "github.yml", "gitlab": "gitlab.yml", "shell": "shell.sh"}[ci]
    text = files("rprime").joinpath(f"data/ci/{name}").read_text(encoding="utf-8")
    lines = {"@PROMOTE@": _promotion(ci, job.project), "@INPUTS@": _inputs(job)}
    for mark, block in lines.items():
        text = text.replace(f"{mark}\n", block)
    values = {"@VERSION@": __version__, "@FILE@": _yaml(job.file), "@ARGUMENTS@": job.arguments}
    for mark, value in values.items():
        text = text.replace(mark, value)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if ci == "shell" else 0o644)
    return f"the job for {_NAMES[ci]}"


def _inputs(job: _Job) -> str:
    return "".join(f"          {name}: {_yaml(value)}\n" for name, value in job.inputs.items())


def _yaml(value: str) -> str:
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS
    is_ours = value.startswith("${{") or value == "alias=champion"
    return value if is_plain or is_ours else json.dumps(value, ensure_ascii=False)


def _promotion(ci: Ci, project: str | None) -> str:
    """Return the lines that move the alias; none without a service."""
    if project is None:
        return ""
    promote = f"rprime promote rprime.json champion --project {shlex.quote(project)}"
    here, there = {
        "shell": ("${1:-}", "promote"),
        "gitlab": ("${CI_COMMIT_BRANCH:-}", "$CI_DEFAULT_BRANCH"),
        "github": ("", ""),
    }[ci]
    judged = " | ".join(f'"{there} {status}"' for status in (0, 3, 5))
    lines = [
        "# The first evaluation sets the alias, and after that only a pass moves it.",
        f'case "{here} $status" in',
        f"  {judged})",
        f"    {promote} --if-absent",
        f"    {promote} --if-passed",
        "    ;;",
        "esac",
    ]
    if ci == "gitlab":
        lines = ["    - |", *(f"      {line}" for line in lines)]
    return "".join(f"{line}\n" for line in lines)


def _next_steps(ci: Ci, job: _Job, targets: Sequence[Path]) -> Iterator[str]:
    """Yield what to do next."""
    path = targets[-1]
    yield "Next:"
    steps = [f"Put the command that writes {job.file} into {path}, where it says so."]
    if ci != "shell":
        steps.append(f"Replace OWNER in {path} by the owner of the repository of rprime.")
    if path.suffixes == [".gitlab-ci", ".yml"]:
        steps.append(f"Add to {_GITLAB}: include: {{local: {path}}}")
    if job.project is None:
        command = (
            f"sh {path}" if ci == "shell" else f"rprime evaluate {job.arguments} --gates gates.yaml"
        )
        steps += [
            f"Try it: {command}",
            f"It passes and ends with 0. Spoil some predictions in {job.file}: it fails, with 1.",
            f"Commit {' '.join(map(str, targets))}, and a new {job.baseline} with each release.",
        ]
    else:
        steps.append("Name the service in the variable RPRIME_SERVER, and its key in RPRIME_KEY.")
        when = f"sh {path} promote" if ci == "shell" else "the first run on the main branch"
        steps += [
            f"Set the baseline: {when} points the alias champion at this model.",
            f"Commit {' '.join(map(str, targets))}.",
        ]
    yield from (f"  {number}. {step}" for number, step in enumerate(steps, 1))
