# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_training.commands.attach import Attach as Attach
from sigma_training.commands.detach import Detach as Detach
from sigma_training.commands.go import Go as Go
from sigma_training.commands.pause import Pause as Pause
from sigma_training.commands.reset import Reset as Reset
from sigma_training.commands.rewind import Rewind as Rewind
from sigma_training.commands.save import Save as Save
from sigma_training.commands.set import Set as Set
from sigma_training.commands.step import StepBy as StepBy
from sigma_training.commands.stop import StopTraining as StopTraining
from sigma_training.commands.swap import Swap as Swap
from sigma_training.commands.undo import Undo as Undo
from sigma_training.history.metrics import History as History
from sigma_training.minimisation import minimise as minimise
from sigma_training.tiers import Tiered as Tiered
from sigma_training.trainer import NetworkTrainer as NetworkTrainer
