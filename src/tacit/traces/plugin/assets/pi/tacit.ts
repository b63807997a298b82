// Tells Tacit when a turn or a session of pi ends; written by `tacit`, taken back by
// `tacit disconnect pi`. It starts tacit-hook, does not wait for it, and never fails.
import { spawn } from "node:child_process";

const HOOK = @HOOK@;

function tell(event, ctx) {
  try {
    const session = ctx.sessionManager;
    const said = {
      type: event,
      sessionFile: session?.getSessionFile?.() ?? undefined,
      sessionId: session?.getSessionId?.() ?? undefined,
      cwd: ctx.cwd,
    };
    const child = spawn(HOOK[0], [...HOOK.slice(1), "pi", event], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    child.on("error", () => {});
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(said));
    child.unref();
  } catch {}
}

export default function (pi) {
  for (const event of ["agent_end", "session_shutdown"]) {
    pi.on(event, async (_said, ctx) => tell(event, ctx));
  }
}
