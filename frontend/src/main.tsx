import { render } from "preact";
import "./main.css";
import "./app/settings";
import { App } from "./app/App";
import { bindAddress, boot } from "./app/control";
import { bindKeys } from "./app/keys";

// The address is read before it is written.
void boot();
bindAddress();
bindKeys();
render(<App />, document.getElementById("app")!);
