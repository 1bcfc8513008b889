# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_cluster.checking import ClusterReport as ClusterReport
from sigma_cluster.checking import WorkerReport as WorkerReport
from sigma_cluster.checking import check_cluster as check_cluster
from sigma_cluster.command import cluster as cluster
from sigma_cluster.planning import StepCosts as StepCosts
from sigma_cluster.planning import WorkerPlan as WorkerPlan
from sigma_cluster.planning import plan_workers as plan_workers
