import { render } from "preact";
import "./main.css";
import "./app/settings";
import { App } from "./app/App";
import { bindAddress, boot } from "./app/control";
import { bindKeys } from "./app/keys";
import { Compare } from "./compare/Compare";
import { comparedRuns, load } from "./compare/state";

const host = document.getElementById("app")!;
const pair = comparedRuns(location.pathname);
if (pair) {
  void load(pair);
  render(<Compare pair={pair} />, host);
} else {
  // The address is read before it is written.
  void boot();
  bindAddress();
  bindKeys();
  render(<App />, host);
}
