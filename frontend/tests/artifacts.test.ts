import { expect, test } from "vitest";
import { fromRecording } from "../src/transport/artifacts";

test("a payload of an earlier version is read with what it did not write", async () => {
  const held = fromRecording({ a: { format: "execution/1", kernels: [], configs: { k: "XBLOCK 64" } }, b: { format: "cache/1" } });
  const old = held.get({ hash: "a", kind: "execution" } as never);
  const other = held.get({ hash: "b", kind: "cache" } as never);
  await Promise.resolve();
  expect(old.value).toEqual({
    state: "ready",
    value: { format: "execution/1", kernels: [], autotuned: [], configs: { k: "XBLOCK 64" }, cuda_graphs: [] },
  });
  expect(other.value).toEqual({ state: "ready", value: { format: "cache/1" } });
});
