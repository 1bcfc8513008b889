// The views in the order of the header; README.md tells how to add one.
import { Data } from "./data.js";
import { Journal } from "./journal.js";
import { Network } from "./network.js";
import { Runs } from "./runs.js";
import { Train } from "./train.js";
import { Try } from "./try.js";

export const VIEWS = [
  { name: "train", component: Train },
  { name: "network", component: Network },
  { name: "data", component: Data },
  { name: "try", component: Try },
  { name: "runs", component: Runs },
  { name: "journal", component: Journal },
];
