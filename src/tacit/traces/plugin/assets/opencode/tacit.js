// Tells Tacit when a session of opencode falls idle, and tells opencode what Tacit has for it, and
// which learned skills it goes without, by lot, where the user wants to know; written by `tacit`, taken back by `tacit disconnect opencode`. It never fails.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";

const HOOKS = @HOOKS@;
const WAIT = 2000;
const SKILL = /^ *<skill>\n *<name>(.*)<\/name>\n[^]*?^ *<\/skill>\n/gm;
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

// The sides of the learned skills that are `listed` for a session: a lot for each, drawn from the
// session's id, so that it is the same as often as the session goes on.
function draw(lots, session, listed) {
  const drawn = { offered: {}, held: {} };
  for (const [name, digest] of Object.entries(lots.skills)) {
    if (!listed.includes(name)) continue;
    const hash = createHash("sha256").update(`${session} ${name}`).digest();
    drawn[hash.readUInt32BE(0) < lots.share * 2 ** 32 ? "held" : "offered"][name] = digest;
  }
  return drawn;
}

export const Tacit = async ({ client, directory }) => {
  // Once a process: what stands before a conversation must not change while it goes on.
  const opening = ask("session.created", { cwd: directory });
  let shown = false;
  const drawn = new Map();
  const above = new Map(); // a helper goes without what the session does that it works for
  const root = (session) => (above.has(session) ? root(above.get(session)) : session);
  const leaveOut = (lots, session, system) => {
    const listed = system.flatMap((part) => [...part.matchAll(SKILL)].map((found) => found[1]));
    const lot = draw(lots, session, listed);
    if (listed.length && !drawn.has(session)) drawn.set(session, lot);
    const keep = (all, name) => (Object.hasOwn(lot.held, name) ? "" : all);
    system.forEach((part, i) => (system[i] = part.replace(SKILL, keep)));
  };
  return {
    config: async (config) => {
      try {
        config.command = { tacit: COMMAND, ...config.command };
      } catch {}
    },
    event: async ({ event }) => {
      if (event?.type === "session.idle") {
        const sessionID = event.properties?.sessionID;
        tell("session.idle", { sessionID, cwd: directory, drawn: drawn.get(sessionID) });
      }
      const { id, parentID } = event?.properties?.info ?? {};
      if (event?.type === "session.created" && parentID) above.set(id, parentID);
      if (event?.type === "session.created" && !shown) {
        shown = true;
        try {
          const { news } = await opening;
          if (news) await client.tui.showToast({ body: { message: news, variant: "info" } });
        } catch {}
      }
    },
    "experimental.chat.system.transform": async (said, output) => {
      try {
        const { context, lots } = await opening;
        if (lots?.skills) leaveOut(lots, root(said.sessionID), output.system);
        if (context) output.system.push(context);
      } catch {}
    },
  };
};
