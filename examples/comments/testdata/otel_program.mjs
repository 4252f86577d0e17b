// One deposit with pg or mysql2, each statement in autocommit, watched by OpenTelemetry's own instrumentation. It prints
// the trace that it is of.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { trace } = require('@opentelemetry/api')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')
const { PgInstrumentation } = require('@opentelemetry/instrumentation-pg')
const { MySQL2Instrumentation } = require('@opentelemetry/instrumentation-mysql2')

new NodeTracerProvider().register()
const comments = { addSqlCommenterCommentToQueries: true }
registerInstrumentations({ instrumentations: [new PgInstrumentation(comments), new MySQL2Instrumentation(comments)] })

const url = process.env.DATABASE_URL

async function viaPg () {
  const { Client } = require('pg')
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('SELECT balance FROM account WHERE id = 1')
  await client.query('UPDATE account SET balance = $1 WHERE id = 1', [rows[0].balance + 10])
  await client.end()
}

async function viaMySQL2 () {
  const connection = require('mysql2').createConnection(url)
  const query = (text, values) => new Promise((resolve, reject) => {
    connection.query(text, values, (err, rows) => err ? reject(err) : resolve(rows))
  })
  const rows = await query('SELECT balance FROM account WHERE id = 1')
  await query('UPDATE account SET balance = ? WHERE id = 1', [rows[0].balance + 10])
  connection.end()
}

await trace.getTracer('deposit').startActiveSpan('deposit', async (span) => {
  await (url.startsWith('postgres:') ? viaPg() : viaMySQL2())
  console.log(span.spanContext().traceId)
  span.end()
})
