"""The contracts of plugins: one small abstract class for every kind of component, and the types that its methods use.

This is one of the public modules that plugins import; ``docs/plugins.md`` lists them. ``sigma_kernel`` exports the same
names. Each class documents what the kernel calls and what it guarantees in return; the conformance suites in
:mod:`sigma_testing` check the component's side. Components are attrs classes whose fields are their settings; a
field made by :func:`live` can be changed during a run. Forward passes, losses and updates are written with
:mod:`sigma_kernel.functions`, on nodes of :mod:`sigma_kernel.graph`.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "commanding": "Command CommandEffects CommandTarget CommandedRun PatternCommand CommandPlan",
        "compute": "Array Arrays Backend Batches BindingProgram Burst Exporter Inference Lane LoopProgram Numbers"
        " Program Records Share Step",
        "data": "Augmentation CachedData ConfigurationDraft Dataset Encoder Extractor Finding Inspection Inspector"
        " Iterator Label Preprocessor Reader Source",
        "grouping": "Advance ApplyOrder Blueprint Channel Commit ComputeOrder Dismiss GroupEvent GroupOperator"
        " GroupOrder JoinOrder KeepOrder KeepState LeaveOrder MemberOrder Notice PauseOrder PingOrder Position Provide"
        " ReplaceState Resize ShardPart ShardSum StartOrder StateKept StateSent Tick Transport WorkerAlive"
        " WorkerComputed WorkerCut WorkerEvent WorkerFailed WorkerJoined WorkerLost WorkerReady Withdraw check_workers"
        " merge_in_tree",
        "media": "HistogramValue Media MediaEntry PictureValue SoundValue TableValue TextValue decode_media",
        "model": "Architecture Context CostLayer Draws Initialiser Layer Outputs Parameter Rewriting Totals live"
        " live_settings",
        "optimisation": "GradientOptimiser Modifier Objective Optimisation Optimiser Schedule Slot Transform"
        " Transformed Update",
        "running": "Goals Host Lifecycle SentCommand Trainer TrainerReport",
        "steering": "Compute Criterion Hook HookContext Iterations Merger Metric Operator Outlook Recipe Repeatable"
        " RowHistory RowLosses"
        " MODES TextGenerator Work check_mode check_workers merge_in_tree",
        "storing": "Checkpoint Checkpoints ConfigurationFormat Excerpt FOR_REPLAYS Journal RowWriter Store StoredRun",
        "watching": "AddressEntry Branch Chart HookEntry LayerEntry Monitor Panel StateEntry Stretch Ticket TrainerView"
        " View WorkEntry",
    },
)
