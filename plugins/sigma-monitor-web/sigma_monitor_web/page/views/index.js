// The views in the order of the header; README.md tells how to add one.
import { Journal } from "./journal.js";
import { Runs } from "./runs.js";
import { Train } from "./train.js";

export const VIEWS = [
  { name: "train", component: Train },
  { name: "runs", component: Runs },
  { name: "journal", component: Journal },
];
