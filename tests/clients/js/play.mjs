// Plays one case of one client: node play.mjs CLIENT "CASE" URL. Its answer, on standard output, is judged by checks/node.py.
// node play.mjs CLIENT alone tells which cases there are, and on which server each is played.

const [client, name, url] = process.argv.slice(2);
const { cases } = await import(`./${client}.mjs`);
if (name === undefined) {
  console.log(JSON.stringify(Object.entries(cases).map(([name, { server }]) => ({ name, server }))));
} else {
  const turns = await cases[name].play(url);
  // Sockets that a client keeps for later would hold the process; what is written into a pipe has to get there first.
  process.stdout.write(JSON.stringify(turns ?? []), () => process.exit(0));
}
