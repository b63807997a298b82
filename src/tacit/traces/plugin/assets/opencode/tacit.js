// Tells Tacit when a session of opencode falls idle, and tells opencode what Tacit has for it;
// written by `tacit`, taken back by `tacit disconnect opencode`. It never fails.
import { spawn } from "node:child_process";

const HOOKS = @HOOKS@;
const WAIT = 2000;
const COMMAND = {
  description: "Ask Tacit what it learned: inbox, accept, undo, memory, why.",
  template:
    "Run `tacit $ARGUMENTS` in the shell, or `tacit inbox` where nothing stands behind `tacit`. " +
    "Show what it prints as it is, and do nothing else.",
};

function start(event, said, answered) {
  const [program, ...words] = HOOKS[event];
  const child = spawn(program, words, {
    // An answer hangs on the folder; what is told says it itself, and the folder may be gone.
    cwd: answered ? said.cwd : undefined,
    stdio: ["pipe", answered ? "pipe" : "ignore", "ignore"],
    detached: true,
  });
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(said));
  child.unref();
  return child;
}

function tell(event, said) {
  try {
    start(event, said, false);
  } catch {}
}

// What the hook prints, or nothing after a while.
function ask(event, said) {
  return new Promise((resolve) => {
    const nothing = setTimeout(() => resolve({}), WAIT);
    const done = (value) => (clearTimeout(nothing), resolve(value));
    try {
      let text = "";
      const child = start(event, said, true);
      child.on("error", () => done({}));
      child.stdout.on("data", (part) => (text += part));
      child.stdout.on("end", () => {
        try {
          done(text ? JSON.parse(text) : {});
        } catch {
          done({});
        }
      });
    } catch {
      done({});
    }
  });
}

export const Tacit = async ({ client, directory }) => {
  // Once a process: what stands before a conversation must not change while it goes on.
  const opening = ask("session.created", { cwd: directory });
  let shown = false;
  return {
    config: async (config) => {
      try {
        config.command = { tacit: COMMAND, ...config.command };
      } catch {}
    },
    event: async ({ event }) => {
      if (event?.type === "session.idle") {
        tell("session.idle", { sessionID: event.properties?.sessionID, cwd: directory });
      }
      if (event?.type === "session.created" && !shown) {
        shown = true;
        try {
          const { news } = await opening;
          if (news) await client.tui.showToast({ body: { message: news, variant: "info" } });
        } catch {}
      }
    },
    "experimental.chat.system.transform": async (_said, output) => {
      try {
        const { context } = await opening;
        if (context) output.system.push(context);
      } catch {}
    },
  };
};
