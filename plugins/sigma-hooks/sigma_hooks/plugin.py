"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

HOOKS = {
    "evaluate": ("Evaluate", "Evaluate loss and metrics on a split of the data."),
    "accuracy": ("Accuracy", "Evaluate loss and (top-k) accuracy on a split of the data."),
    "threshold_accuracy": (
        "ThresholdAccuracy",
        "Evaluate the accuracy of binary predictions at a threshold.",
    ),
    "precision": ("Precision", "Evaluate precision: true positives over predicted positives."),
    "recall": ("Recall", "Evaluate recall: true positives over actual positives."),
    "f1": ("F1", "Evaluate the F1 score, the harmonic mean of precision and recall."),
    "auc": ("AUC", "Evaluate the area under the ROC curve, over all rows of a split."),
    "perplexity": ("Perplexity", "Evaluate the perplexity of a model of classes, such as of a language."),
    "intersection_over_union": (
        "IntersectionOverUnion",
        "Evaluate the intersection over union of a segmentation.",
    ),
    "character_error_rate": (
        "CharacterErrorRate",
        "Evaluate the character error rate of sequences of labels.",
    ),
    "confusion_matrix": ("ConfusionMatrix", "Evaluate the confusion matrix: true classes by predicted classes."),
    "maximum_mean_discrepancy": (
        "MaximumMeanDiscrepancy",
        "Evaluate how far generated samples are from real ones, as distributions.",
    ),
    "mean_absolute_error": ("MeanAbsoluteError", "Evaluate the mean absolute error."),
    "root_mean_square_error": ("RootMeanSquareError", "Evaluate the root mean square error."),
    "r_squared": ("RSquared", "Evaluate the coefficient of determination, R squared."),
    "loss": ("Loss", "Log the training loss."),
    "row_loss": ("RowLoss", "Find the rows of a split with the greatest losses, such as mislabelled ones."),
    "row_history": ("RecordRows", "Record the loss of each row over the epochs: rows learned late, or forgotten."),
    "report": ("Report", "Log any published values, by address."),
    "progress": ("Progress", "Log epoch, iteration and the fraction of training completed."),
    "running_time": ("RunningTime", "Publish the wall-clock time of the last interval, in seconds."),
    "phase_time": ("PhaseTime", "Profile an interval: seconds in bursts, data, hooks and evaluation."),
    "extrema": ("Extrema", "Track the minimum and maximum of a value."),
    "accumulate": ("Accumulate", "Aggregate a value over time: mean, sum, minimum or maximum."),
    "statistics": ("Statistics", "Summarise arrays by address: mean, standard deviation, norm and more."),
    "update_rate": ("UpdateRate", "Track the update-to-weight ratio of each layer."),
    "histogram": ("Histogram", "Histograms of parameters, gradients, updates or activations."),
    "stop": ("Stop", "Stop training when a criterion holds."),
    "time_limit": ("TimeLimit", "Stop training after a time limit."),
    "early_stop": ("EarlyStop", "Early stopping: stop when a value no longer improves."),
    "nan_guard": ("NanGuard", "Fail, stop, restore or train on when the loss is NaN or infinite."),
    "verify": ("Verify", "Check iterations against the reference backend, op by op; stop if they differ."),
    "checkpoint": ("SaveCheckpoint", "Save checkpoints, with a retention policy."),
    "reduce_on_plateau": ("ReduceOnPlateau", "Reduce the learning rate when a value no longer improves."),
    "learning_rate_finder": (
        "LearningRateFinder",
        "Learning rate range test: raise the rate and find where the loss falls fastest.",
    ),
    "switch": ("Switch", "A number that can be set live, for criteria to read."),
    "target_maximisation": (
        "TargetMaximisation",
        "Activation maximisation: draw the input that maximises each output.",
    ),
    "filters": ("Filters", "Publish the filters of layers as pictures."),
    "generated_pictures": ("GeneratedPictures", "Publish pictures that a generator makes of random numbers."),
    "function": ("FunctionHook", "Call a Python function."),
    "webhook": ("Webhook", "Post to a webhook, such as Slack's: at the end, after a failure, at a plateau."),
    "email": ("Email", "Send an e-mail: at the end, after a failure, at a plateau."),
}
METRICS = {
    "accuracy": (
        "metrics:AccuracyMetric",
        "Top-k accuracy: the share of samples whose class is among the k highest scores.",
    ),
    "threshold_accuracy": (
        "threshold_accuracy:ThresholdAccuracyMetric",
        "Accuracy of binary predictions at a threshold.",
    ),
    "precision": ("precision:PrecisionMetric", "Precision: true positives over predicted positives."),
    "recall": ("recall:RecallMetric", "Recall: true positives over actual positives."),
    "f1": ("f1:F1Metric", "F1 score: the harmonic mean of precision and recall."),
    "auc": ("auc:AUCMetric", "Area under the ROC curve, exact over all rows."),
    "perplexity": ("perplexity:PerplexityMetric", "Perplexity: the exponential of the mean of -log p."),
    "intersection_over_union": (
        "intersection_over_union:IntersectionOverUnionMetric",
        "Intersection over union (Jaccard index) of the class at each position.",
    ),
    "character_error_rate": (
        "character_error_rate:CharacterErrorRateMetric",
        "Character error rate: edits for each target label.",
    ),
    "confusion_matrix": (
        "confusion_matrix:ConfusionMatrixMetric",
        "Confusion matrix: true classes by predicted classes.",
    ),
    "maximum_mean_discrepancy": (
        "maximum_mean_discrepancy:MaximumMeanDiscrepancyMetric",
        "Maximum mean discrepancy of two samples of distributions.",
    ),
    "mean_absolute_error": ("mean_absolute_error:MeanAbsoluteErrorMetric", "Mean absolute error."),
    "root_mean_square_error": (
        "root_mean_square_error:RootMeanSquareErrorMetric",
        "Root mean square error.",
    ),
    "hamming_loss": (
        "several_labels:HammingLossMetric",
        "Hamming loss: the share of labels that are predicted wrongly.",
    ),
    "subset_accuracy": (
        "several_labels:SubsetAccuracyMetric",
        "Subset accuracy: the share of rows of which all labels are right.",
    ),
    "label_f1": ("several_labels:LabelF1Metric", "F1 score of labels, of which a row may have several."),
    "r_squared": ("r_squared:RSquaredMetric", "Coefficient of determination, R squared."),
}
CRITERIA = {"plateau": ("Plateau", "Whether a value has settled: its latest values are close together.")}

ALSO_KNOWN_AS = {  # in Keras, Lightning and scikit-learn
    "auc": "roc_auc auroc roc_auc_score area_under_curve",
    "character_error_rate": "cer char_error_rate edit_distance levenshtein",
    "intersection_over_union": "iou mean_iou miou jaccard jaccard_index jaccard_score",
    "accuracy": "top_k_accuracy top_k_categorical_accuracy acc categorical_accuracy"
    " sparse_categorical_accuracy top_k=top k=top",
    "threshold_accuracy": "binary_accuracy",
    "f1": "f1_score",
    "label_f1": "multilabel_f1_score MultilabelF1Score",
    "subset_accuracy": "exact_match_ratio MultilabelExactMatch",
    "hamming_loss": "hamming",
    "confusion_matrix": "confusion",
    "mean_absolute_error": "mae",
    "root_mean_square_error": "rmse",
    "r_squared": "r2 r2_score",
    "early_stop": "early_stopping monitor=value mode=better min_delta=by restore_best_weights=restore",
    "row_history": "forgetting_events",
    "checkpoint": "model_checkpoint save_best_only=best save_top_k=best save_last=last",
    "nan_guard": "terminate_on_nan",
    "reduce_on_plateau": "reduce_lr_on_plateau min_lr=least cooldown=rest",
    "progress": "progress_bar tqdm",
    "evaluate": "validate split=on",
    "time_limit": "timer max_time=limit seconds=limit",
    "function": "lambda_callback callback",
    "webhook": "slack notification notify alert",
    "email": "smtp mail notification notify alert",
}
DEFAULT_FOR = {  # roles in which the kernel looks components up
    "evaluate": "evaluation",
    "row_history": "row-history",
    "verify": "verification",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all hooks, metrics and criteria."""
    hooks = [("hook", name, f"{name}:{thing}", text) for name, (thing, text) in HOOKS.items()]
    metrics = [("metric", name, path, text) for name, (path, text) in METRICS.items()]
    criteria = [("criterion", name, f"{name}:{thing}", text) for name, (thing, text) in CRITERIA.items()]
    return [
        Component(
            kind,
            name,
            f"sigma_hooks.{path}",
            text,
            also_known_as=ALSO_KNOWN_AS.get(name, ""),
            default_for=DEFAULT_FOR.get(name, ""),
        )
        for kind, name, path, text in hooks + metrics + criteria
    ]
