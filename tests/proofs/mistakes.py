"""Make mistakes in configuration files and in Python, and write down what each is told.

A mistake in a file is a change of ``FILE`` (old text, new text), or an override as of ``--set``; a mistake in Python is
an expression.  They cover each kind of validator, types of settings, unions, durations, names with hints, tables and
lists in the place of each other, components in lists, texts of architectures, and several mistakes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel import Criterion, Environment, after, between, clock, every, settings
from sigma_run import config
from tests.proofs.parameters import empty_folder

RECORDED = Path(__file__).with_name("mistakes.txt")

FILE = """\
format = 1

[run]
name = "flowers"
seed = 3
precision = "float32"
backend = "numpy"

[run.operator]
type = "local"
shards = 1

[data]
dataset = "iris"
split = { training = 0.8, validation = 0.2 }
batch_size = 16

[data.preprocessors.scale]
type = "standardise"

[network]
architecture = '''
input(4)
+ dense(8, activation="relu", name="hidden") + dropout(0.25)
+ output(3) + softmax_cross_entropy()
'''

[initialisers.weights]
match = "**.weights"
type = "he_normal"

[trainer]
epochs = 4

[trainer.optimiser]
type = "adam"
learning_rate = 0.01

[trainer.optimiser.schedules.learning_rate]
type = "cosine"
total = "10 epochs"

[trainer.optimiser.transforms.clip]
type = "clip_global_norm"
limit = 1.0

[trainer.metrics]
right = { type = "accuracy", top = 1 }

[hooks.score]
type = "accuracy"
on = "validation"
every = "1 epoch"

[hooks.finish]
type = "early_stop"
value = "validation.loss"
patience = 5

[monitors.console]
type = "console"
"""

NOTHING = ("", "")
HOOK = '[hooks.score]\ntype = "accuracy"'
CHANGES: tuple[tuple[tuple[str, str], ...], ...] = (
    # the file itself
    (("format = 1", ""),),
    (("format = 1", "format = 2"),),
    (("format = 1", 'format = "1"'),),
    (("format = 1", "format = 1\nformat = 1"),),
    (("seed = 3", "seed = "),),
    (("seed = 3", "seed = 3 3"),),
    (("[run]", "[run"),),
    (("[network]", "[networks]"),),
    (("[data]\n", "[dat]\n"),),
    (("[trainer]\nepochs = 4", "trainer = 4"),),
    (("[monitors.console]\ntype", "[monitors]\nconsole"),),
    # numbers and words of a table
    (("seed = 3", "seed = -1"),),
    (("seed = 3", "seed = 3.5"),),
    (("seed = 3", "seed = true"),),
    (("seed = 3", 'seed = "three"'),),
    (("seed = 3", "seed = 18446744073709551616"),),
    (("seed = 3", "seed = [3]"),),
    (("seed = 3", "seed = { value = 3 }"),),
    (('name = "flowers"', 'name = "a/b"'),),
    (('name = "flowers"', 'name = ""'),),
    (('name = "flowers"', "name = 7"),),
    (('precision = "float32"', 'precision = "float23"'),),
    (('precision = "float32"', "precision = 32"),),
    (("seed = 3", "seeds = 3"),),
    (("seed = 3", "control = 1"),),
    (("seed = 3", 'prefer = "sigma-recipes"'),),
    (("seed = 3", 'prefer = ["sigma-nothing"]'),),
    (("seed = 3", "prefer = [1]"),),
    (("seed = 3", 'verify = "1 second"'),),
    (("seed = 3", 'verify = "often"'),),
    (("seed = 3", "folder = 5"),),
    (("batch_size = 16", "batch_size = 0"),),
    (("batch_size = 16", "batch_size = 16.0"),),
    (("batch_size = 16", 'batch_size = "16"'),),
    (("batch_size = 16", 'batch_size = 16\nlast_batch = "kep"'),),
    (("batch_size = 16", "batch_size = 16\nlast_batch = false"),),
    (("batch_size = 16", "batchsize = 16"),),
    (("epochs = 4", "epochs = 0"),),
    (("epochs = 4", "epochs = 2.5"),),
    (("epochs = 4", "epochs = -inf"),),
    (("epochs = 4", "epochs = nan"),),
    (("epochs = 4", 'epochs = "4"'),),
    (("epochs = 4", 'epoch = 4'),),
    (("epochs = 4", 'order = "first"'),),
    (("epochs = 4", "order = [1]"),),
    # components: by name, by table, wrong ones
    (('backend = "numpy"', 'backend = "nunpy"'),),
    (('backend = "numpy"', 'backend = "torch:torch"'),),
    (('backend = "numpy"', "backend = 1"),),
    (('backend = "numpy"', 'backend = ["numpy"]'),),
    (('backend = "numpy"', 'backend = { threads = 1 }'),),
    (('backend = "numpy"', 'backend = { type = "numpy", threads = 1 }'),),
    (('backend = "numpy"', 'backend = { type = "numba", threads = -1 }'),),
    (('backend = "numpy"', 'backend = { type = "numba", threads = true, approximate = 1 }'),),
    (('backend = "numpy"', 'backend = "adam"'),),
    (('backend = "numpy"', 'backend = { python = "mine:Backend" }'),),
    (('backend = "numpy"', 'backend = { python = "not a path" }'),),
    (('backend = "numpy"', 'backend = { python = "sigma_kernel.functions:sin" }'),),
    (('backend = "numpy"', 'backend = { type = "numpy", python = "mine:Backend" }'),),
    (("shards = 1", "shards = 0"),),
    (("shards = 1", "shards = 1.5"),),
    (("shards = 1", "burst_seconds = 0"),),
    (("shards = 1", "merger = 3"),),
    (("shards = 1", 'merger = "mean_of_all"'),),
    (("shards = 1", 'merger = { type = "sum", weight = 1 }'),),
    (('dataset = "iris"', 'dataset = "irises"'),),
    (('dataset = "iris"', 'dataset = "csv"'),),
    (('dataset = "iris"', 'dataset = "csv"\npath = 3\ntarget = 5'),),
    (('dataset = "iris"', ""),),
    (("split = { training = 0.8, validation = 0.2 }", "split = { training = 0.8, validation = 0.3 }"),),
    (("split = { training = 0.8, validation = 0.2 }", "split = { validation = 1.0 }"),),
    (("split = { training = 0.8, validation = 0.2 }", "split = { training = 1.2, validation = -0.2 }"),),
    (("split = { training = 0.8, validation = 0.2 }", 'split = { training = "most" }'),),
    (("split = { training = 0.8, validation = 0.2 }", "split = 0.8"),),
    (("split = { training = 0.8, validation = 0.2 }", "split = [0.8, 0.2]"),),
    (("split = { training = 0.8, validation = 0.2 }", 'split_by = "stratifed"'),),
    (('type = "standardise"', 'type = "standardize"'),),
    (('type = "standardise"', 'type = "standardise"\nsection = 1'),),
    (('type = "standardise"', "section = 'inputs'"),),
    (('[data.preprocessors.scale]\ntype = "standardise"', '[data.preprocessors]\nscale = ["standardise"]'),),
    (("[data.preprocessors.scale]", '[data.preprocessors."two words"]'),),
    (('match = "**.weights"', ""),),
    (('match = "**.weights"', "match = 1"),),
    (('type = "he_normal"', 'type = "he_norm"'),),
    (('type = "he_normal"', 'type = "he_normal"\ngain = "tanhh"'),),
    (('type = "he_normal"', 'type = "he_normal"\nfan = "middle"\ngain = [1]'),),
    (('type = "he_normal"', 'type = "uniform"\nlow = 1.0\nhigh = 0.0'),),
    (('type = "adam"', 'type = "adams"'),),
    (('type = "adam"', 'type = "torch_adam"'),),
    (('type = "adam"', 'type = "Adam"'),),
    (('type = "adam"', ""),),
    (("learning_rate = 0.01", "learning_rate = -0.01"),),
    (("learning_rate = 0.01", 'learning_rate = "fast"'),),
    (("learning_rate = 0.01", "learning_rate = nan"),),
    (("learning_rate = 0.01", "lr = 0.01"),),
    (("learning_rate = 0.01", "beta1 = 1.0\nbeta2 = -1\nepsilon = 0"),),
    (("learning_rate = 0.01", "amsgrad = 1"),),
    (('[trainer.optimiser]\ntype = "adam"\nlearning_rate = 0.01', '[trainer.optimisers.one]\ntype = "adam"'),),
    (('total = "10 epochs"', 'total = "10 fortnights"'),),
    (('total = "10 epochs"', 'total = "ten epochs"'),),
    (('total = "10 epochs"', "total = 10"),),
    (('total = "10 epochs"', 'total = "0 epochs"'),),
    (('total = "10 epochs"', 'total = "-1 epoch"'),),
    (('total = "10 epochs"', ""),),
    (("[trainer.optimiser.schedules.learning_rate]", "[trainer.optimiser.schedules.momentum]"),),
    (("limit = 1.0", "limit = -1"),),
    (("limit = 1.0", 'limit = "much"'),),
    (("[trainer.optimiser.transforms.clip]\ntype", "[trainer.optimiser.transforms]\nclip"),),
    (("top = 1", "top = 0"),),
    (("top = 1", "top = 1.5"),),
    (("right =", '"not right" ='),),
    (('right = { type = "accuracy", top = 1 }', "right = 3"),),
    # hooks, durations and criteria
    (('every = "1 epoch"', 'every = "1 epochs, 2 iterations"'),),
    (('every = "1 epoch"', 'every = "every"'),),
    (('every = "1 epoch"', "every = 1"),),
    (('every = "1 epoch"', 'every = "0 iterations"'),),
    (('every = "1 epoch"', 'every = "1.5 iterations"'),),
    (('every = "1 epoch"', 'every = "5 minuts"'),),
    (('every = "1 epoch"', 'every = ""'),),
    (('every = "1 epoch"', 'when = "epoch reeches 3"'),),
    (('every = "1 epoch"', 'when = "training.loss is below"'),),
    (('every = "1 epoch"', 'when = "(epoch reaches 3"'),),
    (('every = "1 epoch"', "when = 3"),),
    (('every = "1 epoch"', 'when = "epoch reaches 3 for 2 fortnights"'),),
    (('every = "1 epoch"', 'priority = "high"\nscope = "everywhere"\non_error = "explode"\nbackground = "no"'),),
    (('every = "1 epoch"', "budget = 0\nover_budget = 'stop'"),),
    (('every = "1 epoch"', "metrics = [1]"),),
    (('every = "1 epoch"', 'metrics = { right = "accuracies" }'),),
    (('every = "1 epoch"', "on = true"),),
    (("patience = 5", "patience = 0"),),
    (("patience = 5", "patience = 5\nrestore = 'yes'"),),
    (('value = "validation.loss"', "value = 3"),),
    (('value = "validation.loss"', 'value = "validation loss"'),),
    (("[hooks.finish]", '[hooks."a.b"]'),),
    (("[hooks.finish]", "[[hooks.finish]]"),),
    ((HOOK, '[hooks.score]\ntype = "acuracy"'),),
    ((HOOK, '[hooks.score]\npython = 3'),),
    ((HOOK, '[hooks.score]\ntype = ["accuracy", "evaluate"]'),),
    (('[monitors.console]\ntype = "console"', '[monitors.console]\ntype = "consol"'),),
    (('[monitors.console]\ntype = "console"', '[monitors.console]\ntype = "console"\ninterval = -1'),),
    # texts of architectures
    (("+ dropout(0.25)", "+ dropuot(0.25)"),),
    (("+ dropout(0.25)", "+ dropout(1.25)"),),
    (("+ dropout(0.25)", "+ dropout('much')"),),
    (("+ dropout(0.25)", "+ dropout(rates=0.25)"),),
    (("+ dropout(0.25)", "+ dropout(0.25, 0.5, 0.75)"),),
    (("+ dropout(0.25)", "+ dropout(0.25"),),
    (("+ dropout(0.25)", "+ + dropout(0.25)"),),
    (("+ dropout(0.25)", "- dropout(0.25)"),),
    (("+ dropout(0.25)", "+ dropout"),),
    (("+ dropout(0.25)", "+ 0 * dropout(0.25)"),),
    (("+ dropout(0.25)", "+ dense(true)"),),
    (("+ dropout(0.25)", "+ dense(8, activation='relu6x')"),),
    (("+ dropout(0.25)", "+ dense(8, activation=7)"),),
    (("+ dropout(0.25)", "+ dense(8, name='hidden')"),),
    (("+ dropout(0.25)", "+ dense(8, name='a.b')"),),
    (("+ dropout(0.25)", "+ dense(8, share={'weights': 'nothing'})"),),
    (("+ dropout(0.25)", "+ residual(dense(8), projection=3)"),),
    (("input(4)", "inputs(4)"),),
    (("input(4)", "input(0)"),),
    (("input(4)", "input(4.5)"),),
    (("input(4)", "input(4, dtype='float99')"),),
    (("architecture = '''", "architectures = '''"),),
    # several at once
    (("seed = 3", "seed = -3"), ("batch_size = 16", "batch_size = 0"), ("+ dropout(0.25)", "+ dropuot(0.25)"),
     ("learning_rate = 0.01", "learning_rate = -1"), ("patience = 5", "patience = 'five'"), ("top = 1", "top = 0")),
    (('type = "adam"', 'type = "adams"'), (HOOK, '[hooks.score]\ntype = "acuracy"'), ("[run]", "[run]\nsead = 1")),
    (("shards = 1", "shards = 0\nworkers = 0\nburst_seconds = 'short'"), ("limit = 1.0", "limit = -1\nlimits = 2")),
)  # fmt: skip

OVERRIDES: tuple[tuple[str, ...], ...] = (
    ("trainer.optimiser.learning_rate",),
    ("=3",),
    ("run.seed=-1",),
    ("run.sead=1",),
    ("run.seed.value=1",),
    ("trainer.optimiser=adams",),
    ("trainer.optimiser.learning_rate=banana",),
    ("trainer.optimiser.learning_rate=-0.1", "trainer.epochs=0"),
    ("hooks.finish.patience=none",),
    ("hooks.new.every=1 epoch",),
    ("hooks.score.when=epoch reaches",),
    ("data.split={training=0.5, validation=0.6}",),
    ("data.split={training=0.5",),
    ("network.architecture=input(4) + output(3",),
    ("network=input(4)",),
    ("monitors.web.port=70000",),
    ("monitors.web={type='web', port='first'}",),
    ("monitors.console=web, web",),
    ("a..b=1",),
)


# -- Python ------------------------------------------------------------------------------------------------------------
def owner(*checks: Any) -> Any:
    """Return a class with one setting, which these validators check."""
    return define(type("Owner", (), {"setting": field(validator=[*checks]), "__annotations__": {"setting": Any}}))


PYTHON: tuple[str, ...] = (
    # each validator by itself
    "owner(settings.ge(1))(0)",
    "owner(settings.ge(1))('x')",
    "owner(settings.ge(1))(None)",
    "owner(settings.gt(0.5))(0.5)",
    "owner(settings.le(3))(4)",
    "owner(settings.lt(1.0))(1.0)",
    "owner(settings.lt(1.0))(nan)",
    "owner(settings.whole)(1.5)",
    "owner(settings.whole)(True)",
    "owner(settings.finite)(inf)",
    "owner(settings.finite)('1')",
    "owner(settings.in_(('one', 'two')))('tow')",
    "owner(settings.in_(('one', 'two')))([1])",
    "owner(settings.in_((False, True)))(1.5)",
    "owner(settings.min_len(1))('')",
    "owner(settings.min_len(2))([1])",
    "owner(settings.min_len(1))(3)",
    "owner(settings.deep_iterable(settings.ge(0)))([1, -1])",
    "owner(settings.deep_iterable(settings.ge(0)))(5)",
    "owner(settings.instance_of(str, 'a string'))(5)",
    "owner(settings.must(lambda x: x % 2 == 0, 'an even number'))(3)",
    "owner(settings.matches_re('[a-z]+', 'a word in small letters'))('A')",
    "owner(settings.matches_re('[a-z]+', 'a word in small letters'))(3)",
    "owner(settings.optional(settings.ge(1)))(0)",
    "owner(settings.and_(settings.whole, settings.ge(1)))(0.5)",
    "owner(settings.and_(settings.whole, settings.ge(1)))(0)",
    "owner(settings.NAME)('two words')",
    "owner(settings.NAME)('')",
    "owner(settings.epochs)(0)",
    "settings.seed(-1)",
    "settings.seed(1.5)",
    # durations and criteria
    "every(0, 'iteration')",
    "every(-1, 'epoch')",
    "every(1.5, 'iteration')",
    "every(1, 'fortnight')",
    "every('one', 'epoch')",
    "after(0, 'epoch')",
    "clock.duration('ten epochs')",
    "clock.duration('2 fortnights')",
    "between(3, 1, 'epoch')",
    "clock.TimeStep.parse('every 2 epochs 3')",
    "when('epoch reeches 3')",
    "when('')",
    # environments and trainers
    "Environment('a/b')",
    "Environment('x', seed=-1)",
    "Environment('x', seed='one')",
    "Environment('x', precision='float23')",
    "Environment('x', monitors={'web': 'wep'})",
    "Environment('x', moniters={})",
    "create(nam='x')",
    "create(optimizer='adam')",
    "create(optimiser='adams')",
    "create(optimiser=3)",
    "create(optimiser=['adam', 'momentum'])",
    "create(optimiser={'learning_rate': 0.1})",
    "create(optimiser={'type': 'adam', 'learning_rat': 0.1})",
    "create(optimiser={'type': 'adam', 'learning_rate': -1})",
    "create(optimiser={'type': 'adam', 'learning_rate': 'fast'})",
    "create(optimiser={'type': 'adam', 'schedules': {'learning_rate': 'cosin'}})",
    "create(optimiser={'type': 'adam', 'schedules': {'learning_rate': {'type': 'cosine', 'total': 'ten'}}})",
    "create(optimisers={'one': 'adam', 'two': {'type': 'adam', 'match': 3}})",
    "create(backend='nunpy')",
    "create(backend={'type': 'numpy', 'threads': 2})",
    "create(backend=np)",
    "create(operator={'type': 'local', 'shards': 0})",
    "create(iterator='shuffled_twice')",
    "create(batch_size=0)",
    "create(batch_size=2.5)",
    "create(epochs=0)",
    "create(epochs='ten')",
    "create(last_batch='half')",
    "create(precision='half')",
    "create(data='irises')",
    "create(data=3)",
    "create(data={'inputs': [[1.0]], 'targets': [1, 2]})",
    "create(network='input(4) + dens(3)')",
    "create(network='input(4) + dense(3')",
    "create(network='input(4) + dense(-3)')",
    "create(network=3)",
    "create(hooks=['accuracy'])",
    "create(hooks={'score': 'acuracy'})",
    "create(hooks={'score': 3})",
    "create(hooks={'score': {'type': 'accuracy', 'every': 'often'}})",
    "create(hooks={'score': {'type': 'accuracy', 'when': 'epoch reeches 3'}})",
    "create(hooks={'score': {'type': 'accuracy', 'on_error': 'explode', 'scope': 'there'}})",
    "create(metrics={'right': {'type': 'accuracy', 'top': 0}})",
    "create(preprocessors={'scale': 'standardize'})",
    "create(initialisers={'weights': 'he_normal'})",
    "create(initialisers={'weights': ('**.weights', 'he_norm')})",
    "create(initialisers={'weights': ('**.weigths', 'he_normal')})",
    # components
    "layers.Dense(0)",
    "layers.Dense(2.5)",
    "layers.Dense(3, activations='relu')",
    "layers.Dense()",
    "layers.Dropout(1.0)",
    "layers.Dropout('half')",
    "layers.Conv2d(8, 0)",
    "layers.Conv2d(8, 3, padding='sam')",
    "optimisers.Adam(-0.1)",
    "optimisers.Adam(0.1, beta1=1.0)",
    "optimisers.Adam(0.1, beta3=0.5)",
    "optimisers.Adam('fast')",
    "hooks.Accuracy(top=0)",
    "hooks.EarlyStop('validation.loss', patience=-1)",
    "text.TextSample(text='')",
    "text.TextSample(temperature=-1)",
    "text.TextSample(length=1.5)",
    # commands
    "sigma.set('trainer.optimiser.learning_rate', -1)",
    "sigma.set('trainer.optimiser.learning_rate', 'fast')",
    "sigma.set('trainer.optimiser.learning_rat', 0.1)",
    "sigma.set('trainer.iteration', 3)",
    "sigma.set('trainer.network.layers.hidden.weights', [[1.0]])",
    "sigma.set('trainer.batch_size', 0)",
    "sigma.set('trainer.epochs', 0)",
    "sigma.set(3, 4)",
    "sigma.step(0)",
    "sigma.step(1.5)",
    "sigma.step(1, 'second')",
    "sigma.pause()",
    "sigma.go()",
    "sigma.rewind(-1)",
    "sigma.rewind(1.5)",
    "sigma.rewind(3, 'fortnight')",
    "sigma.attach('a.b', 'loss')",
    "sigma.attach('score', 'los')",
    "sigma.attach(3, 'loss')",
    "sigma.attach('score', 3)",
    "sigma.attach('score', {'every': '1 epoch'})",
    "sigma.attach('score', {'type': 'loss', 'evry': '1 epoch'})",
    "sigma.attach('score', {'type': 'loss', 'every': {1}})",
    "sigma.detach('scor')",
    "sigma.detach(3)",
    "sigma.swap('network', 'adam')",
    "sigma.swap('optimiser', 'adams')",
    "sigma.swap('optimiser', {'type': 'adam', 'learning_rate': -1})",
    "sigma.swap('optimisers.one', 'adam')",
    "sigma.exclude([])",
    "sigma.exclude([-1])",
    "sigma.exclude('all')",
    "sigma.exclude([500])",
    "sigma.exclude([1], split='test')",
    "sigma.include([1])",
    "sigma.relabel([1], {1})",
    "sigma.relabel([1], 7)",
    "sigma.relabel([1], {'nothing': 1})",
    "sigma.undo()",
    "sigma.send('sett', pattern='x', value=1)",
    "sigma.send('set', patern='x', value=1)",
    "sigma.send('set', pattern='x')",
    "sigma.send('save', score='high')",
    "sigma.send('stop', trainer='second')",
    "sigma.get('trainer.optimiser.learning_rat')",
    "sigma.trainer('trainr')",
)


def create(**given: Any) -> None:
    """Make a trainer, and prepare it."""
    usual: dict[str, Any] = {
        "network": "input(4) + dense(8, name='hidden') + output(3) + softmax_cross_entropy()", "data": "iris",
        "optimiser": "adam", "backend": "numpy", "epochs": 1,
    }  # fmt: skip
    if "optimisers" in given:
        del usual["optimiser"]
    with Environment("mistaken") as sigma:
        sigma.create_trainer(**{**usual, **given})
        sigma.prepare()


def names() -> dict[str, Any]:
    """Return what expressions may use."""
    sigma = Environment("mistaken")
    sigma.create_trainer(
        network="input(4) + dense(8, name='hidden') + output(3) + softmax_cross_entropy()", data="iris",
        optimiser="adam", backend="numpy", epochs=1,
    )  # fmt: skip
    sigma.prepare()
    rooms = {name: import_module(f"sigma_{name}") for name in ("hooks", "layers", "optimisers", "text")}
    return {
        "Environment": Environment, "after": after, "between": between, "clock": clock, "create": create,
        "every": every, "inf": inf, "nan": nan, "np": np, "owner": owner, "settings": settings, "sigma": sigma,
        "when": Criterion.parse, **rooms,
    }  # fmt: skip


# -- what they are told ------------------------------------------------------------------------------------------------
def told(attempt: Callable[[], Any]) -> str:
    """Return the error of an attempt, with its type; other errors than those of Sigma as well."""
    try:
        attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", "\n    ")
    return "(no error)"


def of_file(changes: tuple[tuple[str, str], ...], overrides: tuple[str, ...] = ()) -> str:
    """Return what a file with mistakes is told when it is read, or else when a trainer is made of it."""
    text = FILE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)

    def attempt() -> None:
        configuration = config.load(text, overrides, name="f.toml")
        with config.build(configuration) as sigma:
            config.prepare(configuration, sigma)

    return told(attempt)


def entries(some: int = 1) -> Iterator[str]:
    """Yield each mistake with what it is told; of those in the file, which are slower, one of so many."""
    with empty_folder():
        for changes in CHANGES[::some]:
            yield "\n".join(f"{old!r} -> {new!r}" for old, new in changes) + f"\n    {of_file(changes)}"
        for overrides in OVERRIDES:
            yield " ".join(f"--set {one!r}" for one in overrides) + f"\n    {of_file((), overrides)}"
        known = names()
        for expression in PYTHON:
            yield f"{expression}\n    {told(lambda text=expression: eval(text, known))}"


def text() -> str:
    """Return all mistakes with what they are told."""
    return "\n\n".join(entries()) + "\n"


def record() -> Path:
    """Write the file."""
    RECORDED.write_text(text(), encoding="utf-8")
    return RECORDED
