# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_run.study.folder import StudyFolder as StudyFolder
from sigma_run.study.folder import create_study as create_study
from sigma_run.study.folder import is_study as is_study
from sigma_run.study.folder import read_study as read_study
from sigma_run.study.folder import reopen_study as reopen_study
from sigma_run.study.members import MemberOpener as MemberOpener
from sigma_run.study.parallel import MemberQueue as MemberQueue
from sigma_run.study.parallel import ParallelTraining as ParallelTraining
from sigma_run.study.plan import LOST as LOST
from sigma_run.study.plan import Member as Member
from sigma_run.study.plan import Study as Study
from sigma_run.study.plan import table_of as table_of
from sigma_run.study.plan import to_plain as to_plain
from sigma_run.study.pool import ProcessPool as ProcessPool
