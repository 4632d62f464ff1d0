#!/usr/bin/env node
// Runs the program in the package of this platform, with the arguments, the streams,
// the signals and the exit status of this process.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "destkit.exe" : "destkit";

let program;
try {
  program = require.resolve(`@destkit/${platform}/bin/${name}`);
} catch {
  const known = Object.keys(require("../package.json").optionalDependencies);
  if (known.includes(`@destkit/${platform}`)) {
    console.error(
      `destkit: the package @destkit/${platform} is missing: install destkit again on this machine, ` +
        "without --omit=optional and without node_modules of another platform",
    );
  } else {
    console.error(
      `destkit: npm has no program for ${platform}, only for ${known.map((p) => p.split("/")[1]).join(", ")}: ` +
        "build it with 'go install github.com/destkit/destkit/cmd/destkit@latest'",
    );
  }
  process.exit(3);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The program decides when it ends. A terminal sends SIGINT to both.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (err) => {
  console.error(`destkit: ${program} does not start: ${err.message}`);
  process.exit(3);
});
child.on("exit", (status, signal) => process.exit(status ?? 128 + (constants.signals[signal] ?? 0)));
