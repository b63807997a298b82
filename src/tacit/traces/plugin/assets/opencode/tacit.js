// Tells Tacit when a session of opencode falls idle; written by `tacit`, taken back by
// `tacit disconnect opencode`. It starts tacit-hook, does not wait for it, and never fails.
import { spawn } from "node:child_process";

const HOOK = @HOOK@;

function tell(event, said) {
  try {
    const child = spawn(HOOK[0], [...HOOK.slice(1), "opencode", event], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(said));
    child.unref();
  } catch {}
}

export const Tacit = async ({ directory }) => ({
  event: async ({ event }) => {
    if (event?.type === "session.idle") {
      tell("session.idle", { sessionID: event.properties?.sessionID, cwd: directory });
    }
  },
});
