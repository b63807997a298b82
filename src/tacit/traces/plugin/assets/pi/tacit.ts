// Tells Tacit when a turn or a session of pi ends, and tells pi, as a session begins, what Tacit has
// for it, and which learned skills it goes without, by lot, where the user wants to know; written by `tacit`, taken back by `tacit disconnect pi`. It never fails.
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

const HOOKS = @HOOKS@;
const SHOWN = @SHOWN@;
const WAIT = 2000;
const drawn = new Map();

function start(event, ctx, answered) {
  const session = ctx.sessionManager;
  const said = {
    type: event,
    sessionFile: session?.getSessionFile?.() ?? undefined,
    sessionId: session?.getSessionId?.() ?? undefined,
    cwd: ctx.cwd,
    drawn: drawn.get(session?.getSessionId?.()),
  };
  const [program, ...words] = HOOKS[event];
  const child = spawn(program, words, {
    // An answer hangs on the folder; what is told says it itself, and the folder may be gone.
    cwd: answered ? ctx.cwd : undefined,
    stdio: ["pipe", answered ? "pipe" : "ignore", "ignore"],
    detached: true,
  });
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(said));
  child.unref();
  return child;
}

function tell(event, ctx) {
  try {
    start(event, ctx, false);
  } catch {}
}

// What the hook prints, or nothing after a while.
function ask(event, ctx) {
  return new Promise((resolve) => {
    const nothing = setTimeout(() => resolve({}), WAIT);
    const done = (value) => (clearTimeout(nothing), resolve(value));
    try {
      let text = "";
      const child = start(event, ctx, true);
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

// Skills that count in this project: pi passes over the project's own folders.
function shown(cwd) {
  const found = [];
  for (let here = cwd; SHOWN.length; here = dirname(here)) {
    const folder = SHOWN[0] + here + SHOWN[1];
    if (existsSync(folder)) found.push(folder);
    if (here === dirname(here)) break;
  }
  return found;
}

// `/tacit inbox`: what the command prints, for the user and not for the model.
function command(words, ctx) {
  return new Promise((resolve) => {
    const beside = join(dirname(HOOKS.agent_end[0]), "tacit");
    const program = existsSync(beside) ? beside : "tacit";
    const given = words.trim() ? words.trim().split(/\s+/) : ["inbox"];
    execFile(program, given, { cwd: ctx.cwd, timeout: 60000 }, (error, out, trouble) => {
      ctx.ui.notify((out + trouble).trim() || String(error ?? ""), error ? "error" : "info");
      resolve(undefined);
    });
  });
}

export default function (pi) {
  let context = "";
  let lots = {};
  pi.registerCommand?.("tacit", {
    description: "Ask Tacit what it learned: inbox, accept, undo, memory, why.",
    handler: command,
  });
  for (const event of ["agent_end", "session_shutdown"]) {
    pi.on(event, async (_said, ctx) => tell(event, ctx));
  }
  pi.on("resources_discover", async (_said, ctx) => {
    try {
      return { skillPaths: shown(ctx.cwd) };
    } catch {}
  });
  pi.on("session_start", async (_said, ctx) => {
    try {
      const known = ctx.sessionManager?.getEntries?.() ?? [];
      const said = await ask("session_start", ctx);
      const told = known.some((e) => e.type === "custom_message" && e.customType === "tacit");
      context = told ? "" : (said.context ?? "");
      lots = said.lots ?? {};
      if (said.news && ctx.hasUI) ctx.ui.notify(said.news, "info");
    } catch {}
  });
  pi.on("before_agent_start", async (said, ctx) => {
    try {
      const options = said.systemPromptOptions;
      const session = ctx.sessionManager.getSessionId();
      if (lots.skills && !drawn.has(session)) {
        drawn.set(session, draw(lots, session, options.skills.map((skill) => skill.name)));
      }
      const held = drawn.get(session)?.held ?? {};
      options.skills = options.skills.filter((skill) => !Object.hasOwn(held, skill.name));
    } catch {}
    if (!context) return;
    const message = { customType: "tacit", content: context, display: false };
    context = "";
    return { message };
  });
}
